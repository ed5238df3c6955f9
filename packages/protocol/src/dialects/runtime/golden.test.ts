// The runtime event stream as files. `every-type.runwire.jsonl` is a log with every type of event, and
// `governed.runwire.jsonl` one with all that governs a call, and
// `runtime-stream.jsonl` a stream with every type of message, as others send it, the standard's own example first. The
// other files are made from them (`vitest run -u` makes them anew).

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { type Event, eventTypes } from "../../events.js";
import { runwire } from "../runwire.js";
import { runtime } from "./index.js";
import { type RuntimeMessage, runtimeTypes } from "./types.js";
import { validateRuntime } from "./validate.js";

describe("the golden runtime streams", () => {
  it.each(["run", "every-type", "course", "governed"])(
    "say the log of their name: %s [RW-RUNTIME-1] [RW-RUNTIME-2]",
    async (name) => {
      const log = readLines(`${name}.runwire.jsonl`).map(eventIn);
      const said = saidOf(log);
      await expect(said.map((data) => `${data}\n`).join("")).toMatchFileSnapshot(
        fixture(`${name}.runtime.jsonl`),
      );
      for (const data of said) {
        const message = JSON.parse(data) as RuntimeMessage;
        expect(
          validateRuntime({ ...message, schemaVersion: "lime-profile-0.4.0" }, { profile: "strict" }),
        ).toEqual([]);
      }
      const back = said.flatMap((data) => runtime.decoder().decode({ data }));
      expect(back.map(({ id, type, payload, child_id = null }) => ({ id, type, payload, child_id }))).toEqual(
        log.map(({ id, type, payload, child_id }) => ({ id, type, payload, child_id })),
      );
    },
  );

  it("tell large data by its ref, and refs as they came [RW-RUNTIME-7]", () => {
    const said = readLines("every-type.runtime.jsonl").map((line) => JSON.parse(line) as RuntimeMessage);
    const payloads = (type: string) =>
      said.filter((message) => message.type === type).map(({ payload }) => payload);
    expect(payloads("tool.args")).toContainEqual(expect.objectContaining({ input_ref: "blob_in" }));
    const { preview, metadata, output_ref } = payloads("tool.result")[0] as { [member: string]: unknown };
    expect([output_ref, preview, metadata]).toEqual([
      "blob_out",
      "# Readme",
      { bytes: 99000, media_type: "text/plain; charset=utf-8" },
    ]);
    expect(payloads("artifact.changed")).toEqual([
      { read_ref: "ref_1", version_id: "v2", preview_ref: "ref_2", diff_ref: "ref_3" },
    ]);
    expect(payloads("evidence.changed")).toEqual([
      { pack_ref: "p", trace_ref: "t", replay_ref: "r", review_ref: "w" },
    ]);
  });

  it("tell the course of a run: attempts, models, waits, and its end in order [RW-RUNTIME-13] [RW-RUNTIME-14]", () => {
    const said = readLines("course.runtime.jsonl").map((line) => JSON.parse(line) as RuntimeMessage);
    const types = (pattern: RegExp): readonly string[] =>
      said.map(({ type }) => type).filter((type) => pattern.test(type));
    expect(types(/^(task|turn)\.(?!profile)/)).toEqual([
      "turn.submitted",
      "turn.started",
      "task.created",
      "task.started",
      "task.attempt.started",
      "task.attempt.failed",
      "task.retrying",
      "task.attempt.started",
      "task.waiting",
      "task.resumed",
      "task.paused",
      "task.resumed",
      "task.cancel_requested",
      "task.attempt.failed",
      "task.cancelled",
      "turn.failed",
    ]);
    const items = said
      .filter(({ type }) => type.startsWith("item."))
      .map(({ type, payload }) => {
        const { itemType, status } = payload as { itemType: string; status: string };
        return `${type} ${itemType} ${status}`;
      });
    expect(items).toEqual([
      "item.started reasoning running",
      "item.started agent_message running",
      "item.completed reasoning completed",
      "item.completed agent_message completed",
      "item.started command running",
      "item.completed command failed",
    ]);
    // What is said in the second attempt says so.
    const attempts = new Set(
      said.filter(({ type }) => type === "tool.failed").map(({ attemptId }) => attemptId),
    );
    expect([...attempts]).toEqual(["run_01K0000000000000000000000A:2"]);
  });

  it("leave out no type of event", () => {
    const types = new Set<string>(readLines("every-type.runwire.jsonl").map((data) => eventIn(data).type));
    expect(Object.keys(eventTypes).filter((type) => !types.has(type))).toEqual([]);
  });

  it("are understood as others send them [RW-RUNTIME-3]", async () => {
    const lines = readLines("runtime-stream.jsonl");
    const types = lines.map((line) => (JSON.parse(line) as RuntimeMessage).type);
    expect(types[0]).toBe("tool.started");
    expect(runtimeTypes.filter((type) => !types.includes(type))).toEqual([]);
    const drafts = lines.flatMap((data) => runtime.decoder().decode({ data }));
    const texts = drafts.map((draft) => `${JSON.stringify(draft)}\n`);
    await expect(texts.join("")).toMatchFileSnapshot(fixture("runtime-stream.drafts.jsonl"));
    for (const line of lines) expect(validateRuntime(JSON.parse(line))).toEqual([]);
  });
});

function saidOf(log: readonly Event[]): readonly string[] {
  let state = runtime.first;
  return log.flatMap((e) => {
    const [next, messages] = runtime.step(state, e);
    state = next;
    return messages.map(({ data }) => data);
  });
}

function eventIn(data: string): Event {
  return { child_id: null, ...runwire.decoder().decode({ data })[0] } as Event;
}

function readLines(name: string): readonly string[] {
  return readFileSync(fixture(name), "utf8").trimEnd().split("\n");
}

function fixture(name: string): string {
  return fileURLToPath(new URL(`../../../fixtures/${name}`, import.meta.url));
}
