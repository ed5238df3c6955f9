import { describe, expect, it } from "vitest";
import type { Draft, Event, Facts } from "../../events.js";
import { limits } from "../../limits.js";
import { runtime } from "../runtime/index.js";
import { loom, loomExport } from "./loom.js";
import { loomReader } from "./reader.js";
import type { LoomState } from "./state.js";

/** What is said for drafts, and what the encoder then remembers. */
function saidFor(
  drafts: readonly Draft[],
  dialect = loom,
): { readonly said: readonly Facts[]; readonly state: LoomState } {
  let state = dialect.first;
  const said = drafts.flatMap((draft, i) => {
    const numbers = { id: `evt_${i}`, ts: "2026-01-01T00:00:00.000Z", pos: i + 1, seq: i + 1 };
    const [next, messages] = dialect.step(state, {
      ...{ run_id: "run_1", child_id: null },
      ...draft,
      ...numbers,
    } as Event);
    state = next;
    return messages.map(({ data }) => JSON.parse(data) as Facts);
  });
  return { said, state };
}

function heardIn(
  dialect: { decoder: typeof loom.decoder },
  ...messages: readonly object[]
): readonly Draft[] {
  const decoder = dialect.decoder();
  return messages.flatMap((message) => decoder.decode({ data: JSON.stringify(message) }));
}

describe("what another dialect has kept", () => {
  it("stands neither for the envelope nor for what a word says [RW-LOOM-1]", () => {
    const drafts = heardIn(
      runtime,
      { type: "model.delta", event_id: "e1", session_id: 5, payload: { text: "hi" } },
      {
        type: "tool.started",
        event_id: "e2",
        name: "other",
        tool_call_id: "c1",
        call_id: "c2",
        more: 1,
        payload: { toolName: "shell", safeArgs: {} },
      },
    );
    expect(saidFor(drafts).said).toEqual([
      { event_id: 1, type: "message_chunk", content: "hi", id: "think" },
      { event_id: 2, type: "tool_call", call_id: "c1", name: "shell", arguments: {} },
      { event_id: 3, type: "tool_start", call_id: "c1", name: "shell", more: 1 },
    ]);
  });

  it("does not end a run otherwise than it ended [RW-LOOM-1]", () => {
    const rest = { type: "run_error", reply: 7, error: "x", run_id: 7, event_id: "e", stop_reason: "odd" };
    const end = (state: string): Draft => ({
      type: "run.lifecycle",
      payload: { state, reason: "why", rest, run_id: 9 } as never,
    });
    expect(saidFor([end("aborted")]).said).toEqual([
      { event_id: 1, reply: "", stop_reason: "cancelled", error: "x", run_id: 7 },
    ]);
    expect(saidFor([end("error")]).said).toEqual([
      { event_id: 1, type: "run_error", error: "why", run_id: "run_1", reply: 7, stop_reason: "odd" },
    ]);
  });
});

describe("a run and its child that give the same ids", () => {
  const child_id = "run_child";
  const call = { call_id: "call_1" };

  it("have each their calls, with their names and arguments [RW-LOOM-1]", () => {
    const { said, state } = saidFor([
      { type: "tool.start", payload: { ...call, tool: "spawn", input: {} } },
      { type: "tool.start", payload: { ...call, tool: "grep", input: { q: 1 } }, child_id },
      { type: "tool.end", payload: { ...call, ok: true, output: "x" }, child_id },
      { type: "text.delta", payload: { ...call, text: "so far" } },
      { type: "tool.end", payload: { ...call, ok: true, output: "y" } },
      { type: "tool.start", payload: { ...call, tool: "sleep" }, child_id },
      { type: "run.lifecycle", payload: { state: "done" }, child_id },
    ]);
    expect(said.map(({ type, name }) => [type, name])).toEqual([
      ["tool_call", "spawn"],
      ["tool_start", "spawn"],
      ["tool_call", "grep"],
      ["tool_start", "grep"],
      ["tool_end", "grep"],
      ["tool_output", "spawn"],
      ["tool_end", "spawn"],
      ["tool_start", "sleep"],
    ]);
    expect(said[2]).toMatchObject({ node_id: child_id, arguments: { q: 1 } });
    expect(state).toMatchObject({ calls: {}, asks: {} });
    const reader = loomReader();
    for (const message of said) reader.read(JSON.stringify(message));
    expect(reader.runs[0]?.calls).toMatchObject([
      { name: "spawn", status: "done", output: "so far", result: "y" },
      { name: "grep", status: "done", arguments: { q: 1 }, result: "x" },
      { name: "sleep", status: "running" },
    ]);
  });

  it("have each their answers [RW-LOOM-1]", () => {
    const ask: Draft = { type: "approval.requested", payload: { approval_id: "a1", ...call, tool: "rm" } };
    const answer = (decision: string): Draft => ({
      type: "approval.resolved",
      payload: { approval_id: "a1", decision },
    });
    const { said } = saidFor([ask, { ...ask, child_id }, { ...answer("once"), child_id }, answer("deny")]);
    expect(said.slice(2)).toMatchObject([
      { type: "tool_approval_response", node_id: child_id, approved: true },
      { type: "tool_approval_response", approved: false },
    ]);
  });
});

describe("a session", () => {
  it("is one for all of a stream, also where a producer names others [RW-LOOM-2]", () => {
    const { said } = saidFor([
      { type: "run.lifecycle", payload: { state: "running" } },
      { type: "turn.submitted", payload: { session_id: "sess_1", messages: [] } },
      { type: "node.enter", payload: { id: "think" }, scope: { session_id: "sess-001" } },
      { type: "text.delta", payload: { text: "Hi", envelope: { session_id: "a b" } } },
      { type: "run.lifecycle", payload: { state: "done" } },
    ]);
    expect(said.map(({ session_id }) => session_id)).toEqual(Array(4).fill("sess_1"));
    const reader = loomReader();
    for (const message of said) expect(reader.read(JSON.stringify(message))).toHaveLength(1);
    expect(reader.runs).toMatchObject([{ state: "done" }]);
  });
});

describe("the start of a run", () => {
  it.each([{ messages: [{ role: "user", content: "Why?" }] }, { prompt: "Why?" }, { message: "Why?" }])(
    "says what was asked: %j [RW-LOOM-3]",
    (payload) => {
      const { said } = saidFor([{ type: "turn.submitted", payload }]);
      expect(said).toMatchObject([{ type: "run_start", message: "Why?" }]);
    },
  );
});

describe("a type that is not known", () => {
  it("is said only where it is one, and without another envelope [RW-LOOM-1] [RW-LOOM-3]", () => {
    const drafts = ["run_error", "run_start", "a.b", "mood"].map((name) => ({
      type: `x.loom.${name}`,
      payload: { message: { error: "x", event_id: "e", type: "run_error" } },
    })) as readonly Draft[];
    expect(saidFor(drafts).said).toEqual([{ event_id: 1, type: "mood", error: "x" }]);
  });
});

describe("the export form", () => {
  it.each([
    {
      Messages: {
        chunk: { content: "x", kind: "Message", index: 3 },
        metadata: { loom_node: "think", namespace: null, step: 4 },
        more: 1,
      },
    },
    { GotPruned: { node_id: "n1", event_id: "e", why: "w" } },
    { TaskSkipped: { type: "run_error", error: "e", node_id: "n1" } },
    { Constructor: { a: 1 } },
  ])("is said again as it came: %j [RW-LOOM-2] [RW-LOOM-3]", (exported) => {
    const drafts = heardIn(loomExport, exported);
    const [again] = saidFor(drafts, loomExport).said;
    expect(again).toEqual(exported);
    // By way of the other form nothing is lost that it has a place for.
    const [message = {}] = saidFor(drafts).said;
    expect(message.type).not.toBe("run_error");
    expect(saidFor(heardIn(loom, message)).said).toEqual([message]);
  });

  it("takes a message's type from its name alone", () => {
    expect(heardIn(loomExport, { Usage: { type: "run_error", error: "x", ...counts } })).toMatchObject([
      { type: "usage" },
    ]);
    expect(heardIn(loomExport, { Reply: { type: "run_error", error: "x", reply: "ok" } })).toMatchObject([
      { type: "message.settled" },
      { type: "run.lifecycle", payload: { state: "done" } },
    ]);
  });
});

const counts = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };

describe("nodes that nobody leaves", () => {
  it("are remembered up to a number, for each run its own", () => {
    const enter = (child_id: string | null): Draft => ({
      type: "node.enter",
      payload: { id: "x" },
      child_id,
    });
    const many = Array.from({ length: 1000 }, () => enter("run_child"));
    const { state, said } = saidFor([enter(null), ...many]);
    expect(said).toHaveLength(1001);
    expect(state.spans.open).toHaveLength(1 + limits.openNodesMax);
    expect(state.spans.open[0]).toEqual({ by: "", name: "x", id: "run-x-0" });
    expect(state.spans.open.at(-1)?.id).toBe("run-x-1000");
  });
});
