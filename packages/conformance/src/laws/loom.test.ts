// CODEC for Loom: what it says is read and said again as it was, and what a log says in it is well-formed.

import {
  type Dialect,
  type Draft,
  type Event,
  loom,
  loomExport,
  loomWords,
  type Message,
} from "@runwire/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { spill } from "../../../server/dist/blobs/spill.js";
import { arbitraryLoomStream, arbitraryWord, type LoomMessage, loomTypes } from "../arbitrary-loom.js";
import { arbitraryRun, eventsOf } from "../arbitrary-runs.js";

const run_id = "run_01K0000000000000000000000A";

describe("Loom", () => {
  it.each(loomTypes)("says a %s again as it came [RW-LOOM-2]", (type) => {
    fc.assert(
      fc.property(arbitraryWord(type), (message) => {
        // What begins or ends a run is said once, and an answer only to a question.
        const before = type === "tool_approval_response" ? [askFor(message)] : [];
        expect(
          saidAgain(loom, [...before, message])
            .slice(before.length)
            .map(bare),
        ).toEqual([bare(message)]);
      }),
      { numRuns: 60 },
    );
  });

  it("says a whole stream again as it came, in both forms [RW-LOOM-2]", () => {
    fc.assert(
      fc.property(arbitraryLoomStream, (stream) => {
        const said = saidAgain(loom, answered(stream));
        expect(said.map(bare)).toEqual(answered(stream).map(bare));
        expect(said.map(({ event_id }) => event_id)).toEqual(said.map((_, i) => i + 1));
        for (const [i, message] of answered(stream).entries()) {
          const { session_id, node_id } = message;
          expect(said[i]).toMatchObject(nonNull({ session_id, node_id }));
        }
        const exported = inForm(loomExport, eventsFrom(loom, answered(stream)));
        expect(saidAgain(loomExport, exported)).toEqual(exported);
        const back = inForm(loom, eventsFrom(loomExport, exported));
        expect(back.map(bare)).toEqual(said.map(bare).map(exportable));
      }),
      { numRuns: 200 },
    );
  });

  it("keeps types that it does not know [RW-LOOM-3]", () => {
    const odd = [
      { type: "agent_mood", mood: null, rest: { a: 1 }, __proto: 2 },
      { event_id: 2, node_id: "odd node", type: "x-1", namespace: "kept" },
    ];
    expect(saidAgain(loom, odd).map(bare)).toEqual([
      { type: "agent_mood", mood: null, rest: { a: 1 }, __proto: 2 },
      { type: "x-1" },
    ]);
  });

  it("numbers from 1 whatever a run says, ends it with exactly one reply or error, and says no word wrongly [RW-LOOM-1]", () => {
    fc.assert(
      fc.property(arbitraryRun(), ({ run_id: of, drafts }) => {
        const said = inForm(loom, eventsOf(of, drafts));
        expect(said.map(({ event_id }) => event_id)).toEqual(said.map((_, i) => i + 1));
        const ends = said.filter(({ type, reply }) => type === "run_error" || typeof reply === "string");
        expect(ends).toEqual([said.at(-1)]);
        expect(said.filter(({ type }) => type === "run_start").length).toBeLessThanOrEqual(1);
        const decoder = loom.decoder();
        for (const message of said) decoder.decode({ data: JSON.stringify(message) });
      }),
      { numRuns: 200 },
    );
  });

  it("says what it can of a log again once it has been through it: nothing more is lost [RW-LOOM-2]", () => {
    fc.assert(
      fc.property(arbitraryRun(), ({ run_id: of, drafts }) => {
        const said = inForm(loom, eventsOf(of, drafts));
        expect(saidAgain(loom, said).map(bare)).toEqual(said.map(bare));
      }),
      { numRuns: 200 },
    );
  });

  it("is read at any cut as if it had not been cut [RW-LOOM-1]", () => {
    fc.assert(
      fc.property(arbitraryRun(), fc.nat(), ({ run_id: of, drafts }, cut) => {
        const events = eventsOf(of, drafts);
        const at = events.length === 0 ? 0 : cut % events.length;
        let state = loom.first;
        for (const e of events.slice(0, at)) [state] = loom.step(state, e);
        const resumed = events.slice(at).reduce<[typeof state, readonly Message[]]>(
          ([now, said], e) => {
            const [next, more] = loom.step(JSON.parse(JSON.stringify(now)), e);
            return [next, [...said, ...more]];
          },
          [state, []],
        );
        const whole = messagesOf(loom, events);
        expect(resumed[1]).toEqual(whole.slice(whole.length - resumed[1].length));
      }),
      { numRuns: 100 },
    );
  });

  it("shows a result that lies elsewhere by how it begins [RW-LOOM-1]", () => {
    const end: Draft = {
      type: "tool.end",
      payload: { call_id: "c", ok: true, preview: "# Readme", blob_ref: "blob_1" },
    };
    expect(inForm(loom, eventsOf(run_id, [end])).at(-1)).toMatchObject({
      type: "tool_end",
      result: "# Readme",
    });
  });

  it("shows one that the log was too small for by how it begins, too [RW-LOOM-1]", () => {
    const { payload } =
      spill("tool.end", { call_id: "c", ok: true, output: "# Readme\n".repeat(10_000) }) ?? {};
    const end = { type: "tool.end", payload } as Draft;
    expect(inForm(loom, eventsOf(run_id, [end])).at(-1)).toMatchObject({
      type: "tool_end",
      result: expect.stringMatching(/^# Readme\n# Readme/),
    });
  });

  it("tells of a type that it does not know where it lies, if the log was too small for it [RW-LOOM-3]", () => {
    const type = "x.loom.agent_mood";
    const { payload } = spill(type, { message: { mood: "glad ".repeat(20_000) } }) ?? {};
    const told = { spilled: { message: { blob_ref: expect.any(String), bytes: expect.any(Number) } } };
    const events = eventsOf(run_id, [{ type, payload } as Draft]);
    expect(inForm(loom, events)).toMatchObject([{ type: "agent_mood", ...told }]);
    expect(inForm(loomExport, events)).toMatchObject([{ AgentMood: told }]);
  });

  it("has a word for each of the events of its protocol", () => {
    expect(Object.keys(loomWords)).toHaveLength(
      23 + ["thought_chunk", "tool_approval_response", "run_error"].length,
    );
  });
});

function askFor({ call_id }: LoomMessage): LoomMessage {
  return { type: "tool_approval", call_id, name: "t", arguments: {} };
}

/** An answer belongs to a question: without one before it, it is left out. */
function answered(stream: readonly LoomMessage[]): readonly LoomMessage[] {
  const open = new Set<unknown>();
  return stream.filter(({ type, call_id }) => {
    if (type === "tool_approval" && call_id != null) open.add(call_id);
    return type !== "tool_approval_response" || open.delete(call_id);
  });
}

/** Without its envelope, and without what null says. */
function bare(message: LoomMessage): LoomMessage {
  const { session_id: _, event_id: __, namespace: ___, ...rest } = message;
  const { node_id: ____, ...said } = rest;
  const payload = message.type === "got_expand" ? rest : said;
  // A run that fails is named, also where the message did not.
  const { run_id: _____, ...error } = payload;
  return message.type === undefined || loomWords[String(message.type)] !== undefined
    ? nonNull(message.type === "run_error" ? error : payload, message.type)
    : payload;
}

/** The export form has room for a state or a value and nothing beside it. */
function exportable(message: LoomMessage): LoomMessage {
  const { type, state, value } = message;
  if (type === "values") return { type, state };
  return type === "custom" ? { type, value } : message;
}

function nonNull(message: LoomMessage, type?: unknown): LoomMessage {
  const isValue = (member: string): boolean =>
    (member === "state" || member === "value") &&
    (type === "custom" || String(type).match(/^(values|updates|checkpoint)$/) !== null);
  return Object.fromEntries(
    Object.entries(message).filter(
      ([member, value]) => value !== undefined && (value !== null || isValue(member)),
    ),
  );
}

function eventsFrom<S>(dialect: Dialect<S>, messages: readonly LoomMessage[]): readonly Event[] {
  const decoder = dialect.decoder();
  return eventsOf(
    run_id,
    messages.flatMap((message) => decoder.decode({ data: JSON.stringify(message) })),
  );
}

function messagesOf<S>(dialect: Dialect<S>, events: readonly Event[]): readonly Message[] {
  let state = dialect.first;
  return events.flatMap((e) => {
    const [next, said] = dialect.step(state, e);
    state = next;
    return said;
  });
}

function inForm<S>(dialect: Dialect<S>, events: readonly Event[]): readonly LoomMessage[] {
  return messagesOf(dialect, events).map(({ data }) => JSON.parse(data) as LoomMessage);
}

function saidAgain<S>(dialect: Dialect<S>, messages: readonly LoomMessage[]): readonly LoomMessage[] {
  return inForm(dialect, eventsFrom(dialect, messages));
}
