// What SHAPE leans on: a transcript depends on nothing that shaping may change. The shaper here is the
// loosest one the design allows: it joins per group and emits any group at any moment, but before a control
// event it flushes the groups of the run that produced it.

import {
  type Draft,
  dialects,
  type Event,
  emptyTranscript,
  flowOf,
  is,
  reduce,
  reduceAll,
  type Transcript,
} from "@runwire/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { arbitraryDraft } from "../arbitraries.js";
import { type ArbitraryRun, arbitraryRun, eventsOf } from "../arbitrary-runs.js";

const choices = fc.array(fc.nat(0xffff), { minLength: 1, maxLength: 30 });

describe("a transcript", () => {
  it("is the same however deltas are joined and moved between control events [RW-FOLD-1]", () => {
    fc.assert(
      fc.property(arbitraryRun(), choices, ({ run_id, drafts }, picks) => {
        const full = timed(drafts);
        expect(meaning(fold(run_id, loosely(full, picks)))).toEqual(meaning(fold(run_id, full)));
      }),
    );
  });

  it("is the same however long deltas are split [RW-FOLD-1]", () => {
    fc.assert(
      fc.property(arbitraryRun(), choices, ({ run_id, drafts }, picks) => {
        const full = timed(drafts);
        expect(meaning(fold(run_id, splitUp(full, picks)))).toEqual(meaning(fold(run_id, full)));
      }),
    );
  });

  it("is the same folded at once, and what it goes on from stays as it was [RW-FOLD-1]", () => {
    fc.assert(
      fc.property(arbitraryRun(), fc.nat(40), ({ run_id, drafts }, at) => {
        const events = eventsOf(run_id, drafts);
        const before = frozen(events.slice(0, at).reduce(reduce, emptyTranscript(run_id)));
        expect(reduceAll(before, events.slice(at))).toEqual(events.reduce(reduce, emptyTranscript(run_id)));
      }),
    );
  });

  // The square of these would be minutes.
  const many = Array.from({ length: 20_000 }, (_, i) => String(i));
  const much: { readonly [what: string]: readonly Draft[] } = {
    calls: many.map((call_id) => ({ type: "tool.start", payload: { call_id, tool: "look" } })),
    "calls and requests of the model": many.flatMap((call_id) => [
      { type: "tool.start", payload: { call_id, tool: "look" } },
      { type: "model.requested", payload: { model: "m", provider: "p" } },
    ]),
    tasks: many.map((task_id) => ({ type: "task.started", payload: {}, scope: { task_id } })),
    "a task that is asked about": [
      { type: "task.started", payload: {}, scope: { task_id: "t" } },
      ...many.flatMap((approval_id): readonly Draft[] => [
        { type: "approval.requested", payload: { approval_id, call_id: "c", tool: "look" } },
        { type: "approval.resolved", payload: { approval_id, decision: "once" } },
      ]),
    ],
  };
  it.each(Object.keys(much))("of many %s costs what its events cost, and not the square of that", (what) => {
    const { pos } = reduceAll(emptyTranscript("run_a"), eventsOf("run_a", much[what] ?? []));
    expect(pos).toBe(much[what]?.length);
  });

  it.each([...dialects.values()])(
    "said in $name costs no more, though nothing told of ever ends",
    (dialect) => {
      const told = many
        .slice(0, 2000)
        .map((call_id): Draft => ({ type: "tool.call", payload: { call_id, tool: "look", input: {} } }));
      let state = dialect.first;
      for (const e of eventsOf("run_a", told)) [state] = dialect.step(state, e);
      expect(JSON.stringify(state).length).toBeLessThan(100_000);
    },
  );

  it("never loses a request that waits or a call that failed, whatever else is said [RW-FOLD-2]", () => {
    fc.assert(
      fc.property(arbitraryRun(), fc.array(arbitraryDraft, { maxLength: 20 }), (run, noise) => {
        const t = fold(run.run_id, [...run.drafts, ...noise]);
        for (const { child_id, kind, id } of unresolved(run)) {
          const of = child_id === null ? t : t.children[child_id]?.transcript;
          if (kind === "call") expect(of?.tools[id]?.status).toBe("failed");
          else expect(of?.[kind][id]?.status).toBe("pending");
        }
      }),
    );
  });

  it("holds for each child what the child's own log holds [RW-FOLD-4]", () => {
    fc.assert(
      fc.property(arbitraryRun(), ({ run_id, drafts }) => {
        const timedDrafts = timed(drafts);
        const t = fold(run_id, timedDrafts);
        const spawns = drafts.filter((draft) => is(draft, "child.spawn"));
        expect(Object.keys(t.children)).toHaveLength(spawns.length);
        for (const { payload, child_id: parent_id = run_id } of spawns) {
          const child = t.children[payload.child_id];
          expect(child?.parent_id).toBe(parent_id);
          const alone = timedDrafts
            .filter((draft) => draft.child_id === payload.child_id)
            .map(({ child_id: _child, ...draft }): Draft => draft);
          // Tasks belong to the tree, and are kept at its root: one run may go on with what another has begun.
          const expected = { ...fold(payload.child_id, alone), children: {}, tasks: {} };
          expect(meaning(child?.transcript)).toEqual(meaning(expected));
        }
        const own = fold(
          run_id,
          timedDrafts.filter((draft) => draft.child_id === undefined),
        );
        const below = { children: {}, tasks: {} };
        expect(meaning({ ...t, ...below })).toEqual(meaning({ ...own, ...below }));
        for (const { transcript } of Object.values(t.children)) expect(transcript.tasks).toEqual({});
      }),
    );
  });

  it("pollutes nothing, whatever the members are called, and changes nothing it was given", () => {
    fc.assert(
      fc.property(
        arbitraryRun({ childLevels: 1 }),
        fc.array(arbitraryDraft, { maxLength: 20 }),
        (run, noise) => {
          const events = eventsOf(run.run_id, [...run.drafts, ...noise]).map(deepFrozen);
          events.reduce((t, e) => deepFrozen(reduce(t, e)), deepFrozen(emptyTranscript(run.run_id)));
          expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
          expect(Object.keys(Object.prototype)).toEqual([]);
        },
      ),
      { numRuns: 50 },
    );
  });
});

function fold(run_id: string, drafts: readonly Draft[]): Transcript {
  return eventsOf(run_id, drafts).reduce<Transcript>((t, e: Event) => reduce(t, e), emptyTranscript(run_id));
}

/** A control event has the same time in both views. */
function timed(drafts: readonly Draft[]): readonly Draft[] {
  return drafts.map((draft, i) => ({ ...draft, ts: new Date(i).toISOString() }));
}

/** Everything but the numbers of the log. Through text, because `toEqual` is lenient with `__proto__`. */
function meaning(t: Transcript | undefined): unknown {
  return JSON.parse(
    JSON.stringify(t ?? null, (name, value) => (name === "pos" || name === "seq" ? undefined : value)),
  );
}

/** Joins per group, emitting a group that `picks` names now and then; groups keep the order they opened in. */
function loosely(drafts: readonly Draft[], picks: readonly number[]): readonly Draft[] {
  const shaped: Draft[] = [];
  const open = new Map<string, Draft>();
  const emit = (key: string) => {
    const pending = open.get(key);
    open.delete(key);
    // A group without text may never be emitted at all.
    if (pending !== undefined && textOf(pending) !== "") shaped.push(pending);
  };
  drafts.forEach((draft, i) => {
    if (!joins(draft)) {
      const own = [...open].filter(([, pending]) => pending.child_id === draft.child_id);
      for (const [key] of own) emit(key);
      shaped.push(draft);
      return;
    }
    const key = JSON.stringify([draft.type, draft.child_id, draft.payload.call_id]);
    const pending = open.get(key);
    open.set(key, pending === undefined ? draft : withText(draft, textOf(pending) + textOf(draft)));
    const pick = picks[i % picks.length] ?? 0;
    const due = [...open.keys()].filter((_, k) => (pick >> k) & 1);
    for (const ready of due) emit(ready);
  });
  for (const key of [...open.keys()]) emit(key);
  return shaped;
}

function splitUp(drafts: readonly Draft[], picks: readonly number[]): readonly Draft[] {
  return drafts.flatMap((draft, i) => {
    if (!joins(draft)) return [draft];
    const text = textOf(draft);
    const at = (picks[i % picks.length] ?? 0) % (text.length + 1);
    return [withText(draft, text.slice(0, at)), withText(draft, text.slice(at))];
  });
}

/** Audio has chunks instead of text; it changes no transcript and is left as it is. */
function joins(draft: Draft): boolean {
  return flowOf(draft.type) !== "control" && draft.type !== "audio.delta";
}

function textOf(draft: Draft): string {
  return (draft.payload as { readonly text: string }).text;
}

function withText(draft: Draft, text: string): Draft {
  return { ...draft, payload: { ...draft.payload, text } } as Draft;
}

interface Unresolved {
  readonly child_id: string | null;
  readonly kind: "approvals" | "clarifications" | "call";
  readonly id: string;
}

function unresolved({ drafts }: ArbitraryRun): readonly Unresolved[] {
  const found = new Map<string, Unresolved>();
  for (const draft of drafts) {
    const { child_id = null } = draft;
    if (is(draft, "approval.requested")) {
      found.set(draft.payload.approval_id, { child_id, kind: "approvals", id: draft.payload.approval_id });
    } else if (is(draft, "clarify.requested")) {
      found.set(draft.payload.clarify_id, { child_id, kind: "clarifications", id: draft.payload.clarify_id });
    } else if (is(draft, "tool.end") && !draft.payload.ok) {
      found.set(draft.payload.call_id, { child_id, kind: "call", id: draft.payload.call_id });
    } else if (is(draft, "approval.resolved")) {
      found.delete(draft.payload.approval_id);
    } else if (is(draft, "clarify.resolved")) {
      found.delete(draft.payload.clarify_id);
    }
  }
  return [...found.values()];
}

function deepFrozen<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) deepFrozen(member);
  return value;
}

function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(frozen);
  }
  return value;
}
