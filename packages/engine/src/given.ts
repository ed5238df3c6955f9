// What a run was given to work with, read from its own log and those of its ancestors.

import { type Event, type Facts, type Given, givenBy, is } from "@runwire/protocol";
import type { AgentHost, RunKey } from "@runwire/server";

export interface GivenRun extends Given {
  readonly session_id: string | null;
}

export async function givenTo(host: AgentHost, run: RunKey, signal: AbortSignal): Promise<GivenRun> {
  const asked: Facts[] = [];
  const session_id = (await host.head(run))?.run.session_id ?? null;
  for (let run_id: string | null = run.run_id; run_id !== null; ) {
    const key: RunKey = { tenant: run.tenant, run_id };
    asked.push(await askedOf(host, key, signal));
    run_id = (await host.head(key))?.run.parent_id ?? null;
  }
  return { ...givenBy(asked), session_id };
}

/** What is asked stands at the beginning of every run. */
async function askedOf(host: AgentHost, run: RunKey, signal: AbortSignal): Promise<Facts> {
  const isAsked = (e: Event): boolean => e.child_id === null && is(e, "turn.submitted");
  for await (const events of host.follow(run, "full", 0, signal)) {
    const found = events.find(isAsked);
    if (found !== undefined) return found.payload;
  }
  throw signal.reason;
}
