// The generator is trusted by every later law, so it is held to what it says.

import { endsRun, is, isFinal, mayMove, type RunState } from "@runwire/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { arbitraryRun, eventsOf } from "./arbitrary-runs.js";

describe("a generated run", () => {
  it("is coherent: states move as they may, calls and children start before they go on, the end is last", () => {
    fc.assert(
      fc.property(arbitraryRun(), ({ run_id, drafts }) => {
        const events = eventsOf(run_id, drafts);
        const states = new Map<string, RunState>();
        const spawned = new Set([run_id]);
        const started = new Set<string>();
        const ended = new Set<string>();
        for (const e of events) {
          const producer = e.child_id ?? run_id;
          expect(spawned).toContain(producer);
          const state = states.get(producer);
          expect(state !== undefined && isFinal(state)).toBe(false);
          if (is(e, "run.lifecycle")) {
            if (state !== undefined) expect(mayMove(state, e.payload.state)).toBe(true);
            states.set(producer, e.payload.state);
          }
          if (is(e, "child.spawn")) spawned.add(e.payload.child_id);
          if (is(e, "tool.start")) started.add(e.payload.call_id);
          if (is(e, "tool.end")) {
            expect(started).toContain(e.payload.call_id);
            expect(ended).not.toContain(e.payload.call_id);
            ended.add(e.payload.call_id);
          }
        }
        expect(events.filter(endsRun)).toEqual([events.at(-1)]);
        expect(events.map(({ pos }) => pos)).toEqual(events.map((_, i) => i + 1));
      }),
    );
  });

  it("varies: every size of it occurs", () => {
    const runs = fc.sample(arbitraryRun(), 300);
    const has = (test: (run: (typeof runs)[number]) => boolean) => runs.filter(test).length;
    expect(has(({ drafts }) => drafts.length > 40)).toBeGreaterThan(3);
    expect(has(({ drafts }) => drafts.some((draft) => draft.child_id !== undefined))).toBeGreaterThan(10);
    expect(
      has(({ drafts }) => drafts.some((d) => is(d, "child.spawn") && d.child_id !== undefined)),
    ).toBeGreaterThan(0);
    expect(has(({ drafts }) => drafts.some((d) => is(d, "tool.end") && !d.payload.ok))).toBeGreaterThan(10);
    expect(has(({ drafts }) => drafts.some((d) => is(d, "plan.proposal")))).toBeGreaterThan(10);
  });

  it("leaves out its opening if a server writes it", () => {
    fc.assert(
      fc.property(arbitraryRun({ opening: false, childLevels: 1 }), ({ drafts }) => {
        expect(drafts.some((draft) => draft.type === "turn.submitted")).toBe(false);
      }),
      { numRuns: 30 },
    );
  });
});
