// Those who answer: several people decide about the same thing at once, and exactly one of them is right.

import { type Event, RunwireError } from "@runwire/protocol";
import { expect } from "vitest";
import type { World } from "./world.js";

export interface Decision {
  readonly approval_id: string;
  /** What the server said stands, by everyone who was told so. */
  readonly stands: string[];
}

/** Each decides about each request, at a time of its own. */
export function decide(
  world: World,
  run_id: string,
  approvals: readonly string[],
  people: number,
): readonly Decision[] {
  const decisions = approvals.map((approval_id): Decision => ({ approval_id, stands: [] }));
  for (let person = 1; person <= people; person++) {
    for (const { approval_id, stands } of decisions) {
      const decision = world.pick(["once", "deny"] as const);
      world.begin(`person ${person} on ${approval_id} of ${run_id}`, async () => {
        for (;;) {
          await world.sleep(world.whole(0, 4000));
          try {
            await world.persistently(() => world.api.answerApproval(run_id, approval_id, { decision }));
            stands.push(decision);
            return;
          } catch (error) {
            if (!(error instanceof RunwireError)) throw error;
            const { status } = error.row;
            // It is not asked yet.
            if (status === 404) {
              if (await runIsOver(world, run_id)) return;
              continue;
            }
            // Somebody else was first, or nobody was in time.
            if (status === 409 || status === 410) return;
            throw error;
          }
        }
      });
    }
  }
  return decisions;
}

export async function runIsOver(world: World, run_id: string): Promise<boolean> {
  const { state } = await world.persistently(() => world.api.getRun(run_id));
  return state === "done" || state === "aborted" || state === "error";
}

/** What was told to stand is what the log says, once. */
export function expectDecided(decisions: readonly Decision[], log: readonly Event[]): void {
  for (const { approval_id, stands } of decisions) {
    const resolved = log.flatMap(({ type, payload }) => {
      const of = payload as { approval_id?: unknown; decision?: unknown };
      return type === "approval.resolved" && of.approval_id === approval_id ? [of.decision] : [];
    });
    expect(resolved.length).toBeLessThanOrEqual(1);
    expect(new Set(stands).size).toBeLessThanOrEqual(1);
    if (stands.length > 0) expect(resolved).toEqual([stands[0]]);
  }
}
