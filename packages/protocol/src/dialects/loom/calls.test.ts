import { describe, expect, it } from "vitest";
import type { Facts } from "../../events.js";
import { limits } from "../../limits.js";
import { parseDraft } from "../../parse.js";
import { callIds } from "./calls.js";
import { loom } from "./loom.js";

/** The payloads of messages that follow each other. */
function heard(...messages: readonly object[]): readonly Facts[] {
  const decoder = loom.decoder();
  return messages
    .flatMap((message) => decoder.decode({ data: JSON.stringify(message) }))
    .map((draft) => parseDraft(draft).payload as Facts);
}

/** The calls of messages that come in a request each. */
function callsApart(...messages: readonly object[]): readonly unknown[] {
  let [state, pos] = [loom.first, 0];
  return messages.flatMap((message) => {
    const drafts = loom.decoderAfter?.(state).decode({ data: JSON.stringify(message) }) ?? [];
    return drafts.map((draft) => {
      pos += 1;
      const numbers = { id: `evt_${pos}`, ts: "2026-01-01T00:00:00.000Z", pos, seq: pos };
      [state] = loom.step(state, { run_id: "run_1", child_id: null, ...draft, ...numbers } as never);
      const { call_id, approval_id } = draft.payload as Facts;
      return call_id ?? approval_id;
    });
  });
}

function callsIn(...messages: readonly object[]): readonly unknown[] {
  return heard(...messages).map(({ call_id }) => call_id);
}

const sh = (type: string, members: object = {}): object => ({ type, name: "sh", ...members });
const ended = { result: "", is_error: false };

describe("what is said of a tool without a `call_id`", () => {
  it("goes on with the arguments that were begun last [RW-LOOM-4]", () => {
    const chunk = (members: object): object => ({
      type: "tool_call_chunk",
      arguments_delta: "{",
      ...members,
    });
    expect(callsIn(chunk({ call_id: "call-1", name: "sort" }), chunk({}))).toEqual(["call-1", "call-1"]);
    // Each node streams its own.
    const [left, right] = [{ node_id: "n-1" }, { node_id: "n-2" }];
    expect(
      callsIn(
        chunk({ call_id: "a", name: "sort", ...left }),
        chunk({ call_id: "b", name: "sort", ...right }),
        chunk(left),
        chunk(right),
        chunk({ name: "sort", ...left }),
        chunk({ name: "sort", node_id: "n-3" }),
      ),
    ).toEqual(["a", "b", "a", "b", "a", "loom:1"]);
    expect(
      callsIn(
        chunk({ call_id: "a", name: "sort" }),
        { type: "tool_call", call_id: "a", name: "sort", arguments: {} },
        chunk({}),
      ),
    ).toEqual(["a", "a", "loom:1"]);
  });

  it("is told apart by how far each call of the tool has got [RW-LOOM-4]", () => {
    const calls = [sh("tool_call", { arguments: { n: "A" } }), sh("tool_call", { arguments: { n: "B" } })];
    const run = [sh("tool_start"), sh("tool_output", { content: ".." }), sh("tool_end", ended)];
    const [one, two] = ["loom:1", "loom:2"];
    expect(callsIn(...calls, ...run, ...run)).toEqual([one, two, one, one, one, two, two, two]);
    expect(callsIn(...calls, ...run.slice(0, 1), ...run)).toEqual([one, two, one, two, one, one]);
    // Who may not is at its end without a start.
    const ask = sh("tool_approval", { arguments: {} });
    expect(callsIn(...calls, ask, sh("tool_end", ended), ask, ...run)).toEqual([
      ...[one, two, one, one],
      ...[two, two, two, two],
    ]);
  });

  it("belongs to a call that had an id when it began [RW-LOOM-4]", () => {
    expect(
      callsIn(
        sh("tool_start", { call_id: "call-1" }),
        sh("tool_output", { content: ".." }),
        sh("tool_end", ended),
        sh("tool_start"),
      ),
    ).toEqual(["call-1", "call-1", "call-1", "loom:1"]);
  });

  it("is the call that its arguments streamed for, where only the whole has an id [RW-LOOM-4] [RW-LOOM-2]", () => {
    const chunk = { type: "tool_call_chunk", arguments_delta: "{" };
    const messages = [
      { ...chunk, name: "sh" },
      chunk,
      sh("tool_call", { call_id: "c1", arguments: {} }),
      sh("tool_approval", { call_id: "c1", arguments: {} }),
      { type: "tool_approval_response", call_id: "c1", approved: true },
      sh("tool_start", { call_id: "c1" }),
      sh("tool_end", { call_id: "c1", ...ended }),
    ];
    const ids = heard(...messages).map(({ call_id, approval_id }) => call_id ?? approval_id);
    expect(ids).toEqual(messages.map(() => "loom:1"));
    const decoder = loom.decoder();
    const drafts = messages.flatMap((message) => decoder.decode({ data: JSON.stringify(message) }));
    expect(said(...drafts.map(({ type, payload }) => [type, payload as Facts] as const))).toEqual(
      messages.map((message, i) => ({ event_id: i + 1, ...message, ...(i < 2 ? { call_id: null } : {}) })),
    );
  });

  it("goes on with a call of a request before, and begins another where that has ended [RW-LOOM-4]", () => {
    const [ask, answer] = [
      sh("tool_approval", { arguments: {} }),
      { type: "tool_approval_response", call_id: "", approved: true },
    ];
    const run = [sh("tool_start"), sh("tool_output", { content: ".." }), sh("tool_end", ended)];
    // Each message is a request of its own.
    const [one, two] = ["loom:1", "loom:2"];
    expect(callsApart(sh("tool_call", { arguments: {} }), ...run, ask, answer, ...run)).toEqual([
      ...[one, one, one, one],
      ...[two, two, two, two, two],
    ]);
    const chunk = { type: "tool_call_chunk", name: "sh", arguments_delta: "{" };
    expect(callsApart(chunk, chunk, sh("tool_call", { call_id: "c", arguments: {} }))).toEqual([
      ...[one, one, one],
    ]);
  });

  it("is answered in turn where it was asked with an empty one", () => {
    const ask = sh("tool_approval", { call_id: "", arguments: {} });
    const answer = { type: "tool_approval_response", call_id: "", approved: true };
    expect(heard(ask, ask, answer, answer).map(({ approval_id }) => approval_id)).toEqual([
      ...["loom:1", "loom:2"],
      ...["loom:1", "loom:2"],
    ]);
  });
});

describe("a `call_id` that is no id here", () => {
  it("is the same call wherever it comes, also in another request [RW-LOOM-4]", () => {
    const [a, b] = [{ call_id: "a b" }, { call_id: `_${"c".repeat(200)}` }];
    const chunk = { type: "tool_call_chunk", arguments_delta: "{" };
    const words = ["tool_start", "tool_output", "tool_end"].map((type) =>
      sh(type, { ...ended, content: ".." }),
    );
    const [first, second, ...rest] = callsIn(
      { ...chunk, ...a },
      { ...chunk, ...b },
      ...words.flatMap((word) => [
        { ...word, ...b },
        { ...word, ...a },
      ]),
    );
    expect(first).not.toBe(second);
    expect(rest).toEqual([second, first, second, first, second, first]);
    expect(callsIn({ ...words[2], ...b }, { ...words[2], ...a })).toEqual([second, first]);
  });

  it("is answered under the name by which it was asked [RW-LOOM-2]", () => {
    const ask = sh("tool_approval", { call_id: "e f", arguments: {} });
    const answer = { type: "tool_approval_response", call_id: "e f", approved: true };
    const [asked, answered] = heard(ask, answer);
    expect(answered?.approval_id).toBe(asked?.approval_id);
    // So is what people answer, who know it by the id alone.
    const { approval_id } = asked ?? {};
    expect(
      said(["approval.requested", asked ?? {}], ["approval.resolved", { approval_id, decision: "once" }]),
    ).toMatchObject([{ call_id: "e f" }, answer]);
  });
});

it("no more calls are remembered than may be open", () => {
  const calls = callIds();
  for (let i = 0; i <= limits.openCallsMax; i++)
    calls.identified("tool_call", { call_id: `c${i}`, tool: "sh" }, null);
  expect(calls.identified("tool_start", { tool: "sh" }, null).call_id).toBe("c1");
});

function said(...events: readonly (readonly [type: string, payload: Facts])[]): readonly Facts[] {
  let state = loom.first;
  return events.flatMap(([type, payload], i) => {
    const numbers = { id: `evt_${i}`, ts: "2026-01-01T00:00:00.000Z", pos: i + 1, seq: i + 1 };
    const [next, messages] = loom.step(state, {
      ...{ run_id: "run_1", child_id: null, type, payload },
      ...numbers,
    } as never);
    state = next;
    return messages.map(({ data }) => JSON.parse(data) as Facts);
  });
}
