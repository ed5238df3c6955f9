// Examples a reader can follow. The laws that hold for every run are in conformance's `laws/shape.test.ts`.

import { describe, expect, it } from "vitest";
import type { Draft, Event } from "./events.js";
import { reduce } from "./reduce.js";
import { emptyTranscript, type Transcript } from "./transcript.js";

describe("a transcript", () => {
  it("joins text and reasoning per block, and a block ends where something else happens [RW-FOLD-1]", () => {
    const t = fold(
      { type: "reasoning.delta", payload: { text: "hm" } },
      { type: "text.delta", payload: { text: "I " } },
      { type: "reasoning.delta", payload: { text: "m" } },
      { type: "text.delta", payload: { text: "see" } },
      { type: "tool.start", payload: { call_id: "c1", tool: "shell" } },
      { type: "text.delta", payload: { text: "." } },
    );
    expect(t.parts).toEqual([
      { kind: "block", reasoning: "hmm", text: "I see" },
      { kind: "tool", call_id: "c1" },
      { kind: "block", reasoning: "", text: "." },
    ]);
    expect(t.message).toBe("I see.");
  });

  it("keeps what a tool streamed out of the message, each kind for itself [RW-FOLD-1]", () => {
    const t = fold(
      { type: "tool.start", payload: { call_id: "c1", tool: "shell" } },
      { type: "text.delta", payload: { text: "a", call_id: "c1" } },
      { type: "tool.output", payload: { text: "1", call_id: "c1" } },
      { type: "reasoning.delta", payload: { text: "x", call_id: "c1" } },
      { type: "text.delta", payload: { text: "b", call_id: "c1" } },
      { type: "tool.output", payload: { text: "2", call_id: "c1" } },
    );
    expect(t.tools.c1).toMatchObject({ text: "ab", streamed: "12", reasoning: "x", status: "running" });
    expect(t.message).toBe("");
    expect(t.parts).toEqual([{ kind: "tool", call_id: "c1" }]);
  });

  it("gives a call one place, where it was first announced", () => {
    const t = fold(
      { type: "tool.args.delta", payload: { text: "{", call_id: "c1" } },
      { type: "text.delta", payload: { text: "meanwhile" } },
      { type: "tool.call", payload: { call_id: "c1", tool: "shell" } },
      { type: "tool.start", payload: { call_id: "c1", tool: "shell", input: {} } },
      { type: "tool.end", payload: { call_id: "c1", ok: true, output: 7 } },
    );
    expect(t.parts.filter((part) => part.kind === "tool")).toEqual([{ kind: "tool", call_id: "c1" }]);
    expect(t.tools.c1).toMatchObject({ status: "ok", arguments: "{", output: 7 });
  });

  it.each(["model.requested", "model.failed"] as const)(
    "forgets a call that an answer was cut off in, when it is asked for again: %s",
    (type) => {
      const t = fold(
        { type: "tool.args.delta", payload: { text: '{"pa', call_id: "c1" } },
        { type: "text.delta", payload: { text: "a", call_id: "c3" } },
        { type: "tool.args.delta", payload: { text: "{}", call_id: "c2" } },
        { type: "tool.call", payload: { call_id: "c2", tool: "shell" } },
        { type, payload: { model: "m" } } as Draft,
        { type: "tool.args.delta", payload: { text: "{}", call_id: "c1" } },
      );
      expect(t.tools).toMatchObject({ c1: { arguments: "{}" }, c2: { status: "called" }, c3: { text: "a" } });
    },
  );

  it("keeps a failed call failed, whatever is said of it later [RW-FOLD-2]", () => {
    const t = fold(
      { type: "tool.start", payload: { call_id: "c1", tool: "shell" } },
      { type: "tool.end", payload: { call_id: "c1", ok: false, error: "KAI-TOOL-RUN-0001" } },
      { type: "tool.start", payload: { call_id: "c1", tool: "shell" } },
      { type: "tool.end", payload: { call_id: "c1", ok: true, error: null } },
    );
    expect(t.tools.c1).toMatchObject({ status: "failed", error: { code: "KAI-TOOL-RUN-0001" } });
  });

  it("says of a call where what lies beside the log is, and how it begins", () => {
    const where = (preview: string) => ({ blob_ref: "blob_1", bytes: 70_000, preview });
    const start = (payload: object): Draft => ({
      type: "tool.start",
      payload: { call_id: "c1", tool: "shell", ...payload },
    });
    const spilled = start({ input: {}, spilled: { input: where('{"command":"rm') } });
    const t = fold(spilled, {
      type: "tool.end",
      payload: { call_id: "c1", ok: true, blob_ref: "blob_1", spilled: { output: where("total 4096") } },
    });
    expect(t.tools.c1?.spilled).toEqual({ input: where('{"command":"rm'), output: where("total 4096") });
    // It goes with what it stood for.
    expect(fold(spilled, start({ input: { command: "ls" } })).tools.c1?.spilled).toEqual({});
    expect(fold(start({ input: {} })).tools.c1).not.toHaveProperty("spilled");
  });

  it("takes a request that is asked again for the one that it was [RW-FOLD-3]", () => {
    const asked: readonly Draft[] = [
      { type: "approval.requested", payload: { approval_id: "a1" } },
      { type: "clarify.requested", payload: { clarify_id: "c1", question: "Which?" } },
    ];
    const t = fold(
      ...asked,
      { type: "approval.resolved", payload: { approval_id: "a1", decision: "deny" } },
      { type: "clarify.resolved", payload: { clarify_id: "c1", answer: "this" } },
      ...asked,
    );
    expect(t.approvals.a1).toMatchObject({ status: "resolved", answer: { decision: "deny" } });
    expect(t.clarifications.c1).toMatchObject({ status: "resolved", answer: { answer: "this" } });
    expect(t.parts).toHaveLength(2);
  });

  it("takes the first answer to a question and no other [RW-FOLD-3]", () => {
    const t = fold(
      { type: "approval.resolved", payload: { approval_id: "a1", decision: "early" } },
      { type: "approval.requested", payload: { approval_id: "a1" } },
      { type: "approval.resolved", payload: { approval_id: "a1", decision: "once" } },
      { type: "approval.resolved", payload: { approval_id: "a1", decision: "deny" } },
      { type: "clarify.requested", payload: { clarify_id: "q1", question: "?" } },
    );
    expect(t.approvals.a1).toMatchObject({ status: "resolved", answer: { decision: "once" } });
    expect(t.clarifications.q1?.status).toBe("pending");
  });

  it("keeps descendants side by side, each knowing who spawned it [RW-FOLD-4]", () => {
    const t = fold(
      { type: "child.spawn", payload: { child_id: "run_b" } },
      { type: "text.delta", payload: { text: "child" }, child_id: "run_b" },
      { type: "child.spawn", payload: { child_id: "run_c" }, child_id: "run_b" },
      { type: "text.delta", payload: { text: "grandchild" }, child_id: "run_c" },
      { type: "run.lifecycle", payload: { state: "error" }, child_id: "run_c" },
      { type: "text.delta", payload: { text: "parent" } },
    );
    expect(t.message).toBe("parent");
    expect(t.state).toBeNull();
    expect(Object.keys(t.children)).toEqual(["run_b", "run_c"]);
    expect(t.children.run_b).toMatchObject({
      parent_id: "run_a",
      transcript: { message: "child", children: {} },
    });
    expect(t.children.run_c).toMatchObject({
      parent_id: "run_b",
      transcript: { message: "grandchild", state: "error" },
    });
    expect(t.children.run_b?.transcript.parts.at(-1)).toEqual({ kind: "child", child_id: "run_c" });
  });

  it("starts a new message after a settled one and sums what was used", () => {
    const t = fold(
      { type: "text.delta", payload: { text: "one" } },
      { type: "message.settled", payload: { text: "one" } },
      { type: "text.delta", payload: { text: "two" } },
      { type: "usage", payload: { input_tokens: 1, model: "m" } },
      { type: "usage", payload: { input_tokens: 2, constructor: 5 } as never },
    );
    expect(t.message).toBe("two");
    expect(t.settled).toEqual([{ text: "one" }]);
    expect(t.usage).toEqual({ input_tokens: 3, constructor: 5 });
  });
});

function fold(...drafts: readonly Draft[]): Transcript {
  const events = drafts.map(
    (draft, i) =>
      ({
        id: `evt_${i}`,
        ts: "2026-01-01T00:00:00Z",
        run_id: "run_a",
        child_id: null,
        pos: i + 1,
        seq: i + 1,
        ...draft,
      }) as Event,
  );
  return events.reduce(reduce, emptyTranscript("run_a"));
}
