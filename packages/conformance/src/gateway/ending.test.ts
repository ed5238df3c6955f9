// The end of a run: what is open is closed before it, and nothing comes after it.

import type { Event } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import {
  allEvents,
  append,
  call,
  codeOf,
  control,
  createRun,
  lifecycle,
  type Reply,
  runPath,
  say,
  text,
  tryAppend,
} from "./calls.js";
import { closeOf, readAll, streamPath } from "./readers.js";
import { freshChildId } from "./story.js";
import { underTest } from "./under-test.js";

const server = underTest(startGateway);

describe("the end of a run", () => {
  it("says what it still had to say before it ends its children", async () => {
    const run_id = await createRun(server.url);
    const child_id = `run_kid.${run_id}`;
    await append(server.url, run_id, say("child.spawn", { child_id }));
    await append(server.url, run_id, text("last words"), lifecycle("done"));
    const told = (await allEvents(server.url, run_id, { detail: "default" }))
      .slice(-4)
      .map(({ type, child_id: by }) => [type, by]);
    expect(told).toEqual([
      ["text.delta", null],
      ["run.lifecycle", child_id],
      ["message.settled", null],
      ["run.lifecycle", null],
    ]);
  });

  it("closes what is open, ends its children from the deepest up, and is the last event [RW-CLOSE-5]", async () => {
    const root = await createRun(server.url);
    const [child, grandchild, finished] = [freshChildId(), freshChildId(), freshChildId()];
    await append(
      server.url,
      root,
      say("child.spawn", { child_id: child }),
      say("child.spawn", { child_id: grandchild }, child),
      say("child.spawn", { child_id: finished }),
      lifecycle("done", finished),
      say("tool.start", { call_id: "call_open", tool: "shell" }),
      say("tool.start", { call_id: "call_closed", tool: "shell" }),
      say("tool.end", { call_id: "call_closed", ok: true }),
      say("tool.start", { call_id: "call_deep", tool: "shell" }, grandchild),
      say("approval.requested", { approval_id: "appr_open" }),
      say("clarify.requested", { clarify_id: "clar_open", question: "which?" }),
      text("pending "),
      text("pending too", grandchild),
    );
    const before = (await allEvents(server.url, root)).length;
    await control(server.url, root, "abort");
    const ending = (await allEvents(server.url, root)).slice(before);
    const shortened = ending.map(({ type, child_id, payload }: Event) => [type, child_id, payload]);
    expect(shortened).toMatchObject([
      ["control.requested", null, { action: "abort" }],
      ["tool.end", null, { call_id: "call_open", ok: false, error: { code: "KAI-RUN-TOOL-0001" } }],
      ["approval.resolved", null, { approval_id: "appr_open", decision: "deny", outcome: "closed" }],
      ["clarify.resolved", null, { clarify_id: "clar_open", outcome: "closed" }],
      ["tool.end", grandchild, { call_id: "call_deep", ok: false }],
      ["run.lifecycle", grandchild, { state: "aborted", reason: "parent ended" }],
      ["run.lifecycle", child, { state: "aborted", reason: "parent ended" }],
      ["run.lifecycle", null, { state: "aborted" }],
    ]);
    for (const run_id of [root, child, grandchild, finished]) {
      const read = await readAll("sse", server.url, streamPath({ run_id }));
      expect(closeOf(read)).toBe("finished");
    }
    const shown = await allEvents(server.url, root, { detail: "default" });
    expect(shown.filter((e) => e.type === "text.delta").map((e) => e.payload)).toMatchObject([
      { text: "pending " },
      { text: "pending too" },
    ]);
  });

  it("settles the message of a run that is done, unless its producer did [RW-CLOSE-5]", async () => {
    const run_id = await createRun(server.url);
    await append(
      server.url,
      run_id,
      text("Hello "),
      say("tool.start", { call_id: "c", tool: "t" }),
      text("world"),
    );
    await append(
      server.url,
      run_id,
      say("text.delta", { text: "(a tool's)", call_id: "c" }),
      lifecycle("done"),
    );
    const settled = (await allEvents(server.url, run_id)).filter((e) => e.type === "message.settled");
    expect(settled.map((e) => (e.payload as { text: string }).text)).toEqual(["Hello world"]);
    const own = await createRun(server.url);
    await append(
      server.url,
      own,
      text("Hello"),
      say("message.settled", { text: "Hello." }),
      lifecycle("done"),
    );
    expect((await allEvents(server.url, own)).filter((e) => e.type === "message.settled")).toHaveLength(1);
  });

  it("is final: nothing is appended after it, by nobody [RW-STATE-2]", async () => {
    for (const state of ["done", "aborted", "error"] as const) {
      const run_id = await createRun(server.url);
      await append(server.url, run_id, lifecycle(state));
      const before = await allEvents(server.url, run_id);
      const late: readonly Reply[] = [
        await tryAppend(server.url, run_id, [text("late")]),
        await tryAppend(server.url, run_id, [lifecycle("running")]),
        await tryAppend(server.url, run_id, [lifecycle(state)]),
        await tryAppend(server.url, run_id, [say("child.spawn", { child_id: freshChildId() })]),
        await tryAppend(server.url, run_id, [text("late")], { id: "p", epoch: 1, seq: 1 }),
        await call(server.url, "POST", runPath(run_id, "children"), { prompt: "late" }),
        await control(server.url, run_id, "steer", { text: "late" }),
      ];
      expect(late.map((reply) => [reply.status, codeOf(reply)])).toEqual(
        late.map(() => [409, "KAI-RUN-ENDED-0001"]),
      );
      expect(await allEvents(server.url, run_id)).toEqual(before);
    }
  });

  it("is stored with what came before it in one batch, or not at all", async () => {
    const run_id = await createRun(server.url);
    const mixed = await tryAppend(server.url, run_id, [text("a"), lifecycle("done"), text("b")]);
    expect(mixed.status).toBe(409);
    expect(await allEvents(server.url, run_id)).toHaveLength(2);
  });
});
