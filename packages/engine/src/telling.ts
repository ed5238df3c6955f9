// What is told of a call beside its start and its end. Such facts wait for an event that is written anyway, and are
// one append with it: they cost no commit of their own, and after a crash there are all of them or none.

import type { Draft, Facts, FamilyType, Scope } from "@runwire/protocol";
import type { RunLog } from "./log.js";

export interface Telling {
  /** To be written with whatever is next. */
  add(...facts: readonly Draft[]): void;
  /** Writes these after what waits. */
  write(...drafts: readonly Draft[]): Promise<void>;
  /** The same, for whoever writes it elsewhere. */
  take(...drafts: readonly Draft[]): readonly Draft[];
}

export function telling(log: RunLog): Telling {
  let waiting: Draft[] = [];
  const take = (...drafts: readonly Draft[]): readonly Draft[] => {
    const all = [...waiting, ...drafts];
    waiting = [];
    return all;
  };
  return {
    add: (...facts) => void waiting.push(...facts),
    write: (...drafts) => log.write(...take(...drafts)),
    take,
  };
}

/** A fact of a call, which its scope names. */
export function factOf(call_id: string, type: FamilyType, payload: Facts, scope: Scope = {}): Draft {
  return { type, payload, scope: { tool_call_id: call_id, ...scope } };
}
