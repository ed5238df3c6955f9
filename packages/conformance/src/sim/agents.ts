// The built-in agent at work: a run that the server itself writes. It is killed with it and goes on with it, people pause
// and resume it, and it comes to the same each time.

import { type Event, type Facts, is } from "@runwire/protocol";
import { expect } from "vitest";
import { runIsOver } from "./people.js";
import type { World } from "./world.js";

export interface Work {
  readonly tenant: string;
  readonly run_id: string;
  readonly prompt: string;
}

export const prompts = ["compare three charting libraries", "tell me about uPlot"] as const;

export async function work(world: World, name: string, prompt: string): Promise<Work> {
  const { run_id } = await world.persistently(() => world.api.createRun({ prompt }, `work-${name}`));
  const { tenant } = world;
  world.roots.push({ tenant, run_id });
  world.begin(`${name} is done`, async () => {
    while (!(await runIsOver(world, run_id))) await world.sleep(world.whole(500, 5000));
  });
  return { tenant, run_id, prompt };
}

/** Somebody who stops it, now and then, and lets it go on. */
export function interrupt(world: World, { run_id }: Work): void {
  world.begin(`who pauses ${run_id}`, async () => {
    for (let left = world.whole(1, 3); left > 0; left--) {
      await world.sleep(world.whole(0, 3000));
      // It may be over, or at something that cannot be paused.
      await world.persistently(() => world.api.pause(run_id)).catch(() => {});
      await world.sleep(world.whole(0, 20_000));
      await world.persistently(() => world.api.resume(run_id)).catch(() => {});
    }
  });
}

/** Which tools were run with what, what they gave, and what everyone said in the end. */
export function outcomeOf(log: readonly Event[]): object {
  const told = (type: Event["type"], of: (facts: Facts) => unknown): readonly string[] =>
    log.flatMap((e) => (e.type === type ? [JSON.stringify(of(e.payload as Facts))] : [])).toSorted();
  const withoutIds = (output: unknown): unknown => {
    const { child_id: _, ...others } = (output ?? {}) as Facts;
    return others;
  };
  return {
    tools: told("tool.start", ({ tool, input }) => [tool, input]),
    ends: told("tool.end", ({ ok, output }) => [ok, withoutIds(output)]),
    said: told("message.settled", ({ text }) => text),
    titles: told("title", ({ title }) => title),
    ended: log
      .flatMap((e) => (e.child_id === null && is(e, "run.lifecycle") ? [e.payload.state] : []))
      .at(-1),
  };
}

export function expectWorked({ run_id }: Work, log: readonly Event[], calmly: object | undefined): void {
  expect({ run_id, ...outcomeOf(log) }).toEqual({ run_id, ...calmly });
  // A call that has started ends once.
  for (const type of ["tool.start", "tool.end"] as const) {
    const ids = log.flatMap((e) =>
      e.type === type ? [`${e.child_id} ${(e.payload as Facts).call_id}`] : [],
    );
    expect(new Set(ids).size).toBe(ids.length);
  }
}
