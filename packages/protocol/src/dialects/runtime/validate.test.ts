import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { validatorOf } from "../../validate.js";
import { runtime } from "./index.js";
import { runtimeRules, runtimeValidator, validateRuntime } from "./validate.js";

const sound = { type: "turn.started", eventId: "e1", timestamp: "2026-05-08T02:30:00Z" };
const strict = {
  ...sound,
  schemaVersion: "lime-profile-0.4.0",
  runtimeId: "r",
  sessionId: "s",
  sequence: 1,
  threadId: "th",
  turnId: "u",
  payload: {},
};

describe("a message", () => {
  it.each([
    [5, "RT-ENV-1"],
    [{ ...sound, type: "started" }, "RT-ENV-2"],
    [{ ...sound, eventId: "" }, "RT-ENV-3"],
    [{ ...sound, timestamp: "8 May" }, "RT-ENV-4"],
    [{ ...sound, sequence: -1 }, "RT-ENV-5"],
    [{ ...sound, turnId: 5 }, "RT-ENV-6"],
    [{ ...sound, refs: [] }, "RT-ENV-7"],
  ])("that breaks one rule is told which: %j [RW-RUNTIME-12]", (message, rule) => {
    expect(validateRuntime(message).map((violation) => violation.rule)).toEqual([rule]);
  });

  it.each([
    [{ ...strict, schemaVersion: "0.4.0" }, "RT-STRICT-1"],
    [{ ...strict, runtimeId: undefined }, "RT-STRICT-2"],
    [{ ...strict, payload: "text" }, "RT-STRICT-3"],
    [{ ...strict, type: "thread.started", threadId: undefined }, "RT-STRICT-4"],
    [{ ...strict, type: "hook.started", turnId: undefined }, "RT-STRICT-5"],
    [{ ...strict, type: "tool.args", toolCallId: "c" }, "RT-STRICT-6"],
    [{ ...strict, type: "action.required" }, "RT-STRICT-7"],
    [{ ...strict, type: "task.profile.resolved" }, "RT-STRICT-8"],
    [{ ...strict, type: "task.attempt.failed", taskId: "k" }, "RT-STRICT-9"],
    [{ ...strict, type: "subagent.status" }, "RT-STRICT-10"],
    [{ ...strict, type: "evidence.changed" }, "RT-STRICT-11"],
  ])("that the strict profile refuses is told why: %j [RW-RUNTIME-12]", (message, rule) => {
    const given = JSON.parse(JSON.stringify(message)) as unknown;
    expect(validateRuntime(given, { profile: "strict" }).map((violation) => violation.rule)).toEqual([rule]);
    expect(validateRuntime(given)).toEqual([]);
  });

  it.each([
    ["2026-05-08T02:30:00Z", true],
    ["2026-05-08T02:30:00.1234567890123+02:00", true],
    ["2016-12-31T23:59:60Z", true],
    ["2026-05-08T24:00:00Z", false],
    ["2026-13-08T02:30:00Z", false],
    ["8 May", false],
  ])(
    "of the time %s is sound for a decoder where it is for the validator [RW-RUNTIME-3]",
    (timestamp, isSound) => {
      const message = { ...sound, timestamp };
      expect(validateRuntime(message).length === 0).toBe(isSound);
      const decode = () => runtime.decoder().decode({ data: JSON.stringify(message) });
      if (isSound) expect(decode()).toHaveLength(1);
      else expect(decode).toThrow("`timestamp` must be an RFC 3339 time");
    },
  );

  it("may tell of the catalog of tools without a call [RW-RUNTIME-12]", () => {
    expect(validateRuntime({ ...strict, type: "tool.catalog.resolved" }, { profile: "strict" })).toEqual([]);
  });
});

describe("a stream", () => {
  it.each(["run", "every-type", "course", "governed"])(
    "that this program says is sound: %s [RW-RUNTIME-12]",
    (name) => {
      const file = fileURLToPath(new URL(`../../../fixtures/${name}.runtime.jsonl`, import.meta.url));
      const validator = validatorOf(runtime);
      const lines = readFileSync(file, "utf8").trimEnd().split("\n");
      expect([...lines.flatMap(validator.check), ...validator.end()]).toEqual([]);
    },
  );

  it("is told once that its messages have no id [RW-RUNTIME-12]", () => {
    const { eventId: _, ...nameless } = sound;
    const validator = runtimeValidator();
    const found = [nameless, nameless].flatMap((message) => validator.check(JSON.stringify(message)));
    expect(found.map(({ rule }) => rule)).toEqual(["RT-ENV-3", "RT-ENV-3"]);
  });

  it("is told what its messages do together [RW-RUNTIME-12]", () => {
    const validator = runtimeValidator();
    const rules = (message: object): readonly string[] =>
      validator.check(JSON.stringify({ ...sound, ...message })).map(({ rule }) => rule);
    expect(rules({ eventId: "a", sequence: 1 })).toEqual([]);
    expect(rules({ eventId: "a", sequence: 2 })).toEqual(["RT-STREAM-1"]);
    expect(rules({ eventId: "b", sequence: 2 })).toEqual(["RT-STREAM-2"]);
    expect(rules({ eventId: "c", sequence: 2, type: "snapshot.updated" })).toEqual([]);
    expect(rules({ eventId: "d", sequence: 3, type: "tool.failed", toolCallId: "t" })).toEqual([]);
    expect(rules({ eventId: "e", sequence: 4, type: "tool.result", toolCallId: "t" })).toEqual([
      "RT-STREAM-3",
    ]);
    expect(validator.check("{").map(({ rule }) => rule)).toEqual(["RT-JSON"]);
  });

  it("may have calls of several runs under one id, and ends of calls that nobody named [RW-RUNTIME-12]", () => {
    const validator = runtimeValidator();
    const rules = [
      {},
      {},
      { tool_call_id: "t", streamId: "run_a" },
      { toolCallId: "t", streamId: "run_a", childId: "run_c", runId: "run_c" },
      { toolCallId: "t", streamId: "run_b" },
      { toolCallId: "t", streamId: "run_a" },
    ].map((ids, i) =>
      validator
        .check(JSON.stringify({ ...sound, type: "tool.result", eventId: `e${i}`, ...ids }))
        .map(({ rule }) => rule),
    );
    expect(rules).toEqual([[], [], [], [], [], ["RT-STREAM-3"]]);
  });

  it("has a sentence for each of its rules", () => {
    for (const sentence of Object.values(runtimeRules)) expect(sentence).toMatch(/^[a-z`]/);
  });
});
