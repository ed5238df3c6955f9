// A store whose file cannot be read now and then: for a moment, or, of one run, for as long as it is damaged. It stands
// between a server and its store; whoever looks at the world reads past it.

import { type ErrorCode, RunwireError } from "@runwire/protocol";
import type { Awaits } from "./awaits.js";

export interface Reads {
  /** Of what is asked, how much fails. */
  failShare: number;
  /** A run of which nothing can be read. */
  damaged: string | undefined;
  /** What is asked of a store goes through here. `late` is what a slow disk does to an answer. */
  through<S extends object>(store: S, late: <T>(answer: Promise<T>) => Promise<T>): S;
  readonly counts: { failed: number; damaged: number };
}

/** What a store reads, each by the name of what asks for it; how it begins is not among it: it would not have begun. */
const questions: ReadonlySet<string> = new Set([
  "head",
  "read",
  "posOfSeq",
  "isErased",
  "listRuns",
  "session",
  "listSessions",
  "inbox",
  "children",
  "blob",
  "snapshotBefore",
  "oldest",
  "allowances",
  "endedMs",
  "endedTrees",
  "tenantSettings",
]);
/** Of these some take their time. */
const slowQuestions: ReadonlySet<string> = new Set(["head", "read"]);

export const damagedCode: ErrorCode = "KAI-SERVER-STORE-0003";

/** `isWriting` says whether what is done now is done in the name of somebody who writes. */
export function reads(random: () => number, awaits: Awaits, isWriting: () => boolean): Reads {
  const counts = { failed: 0, damaged: 0 };

  function fail(name: string, [key]: readonly unknown[]): void {
    const { run_id } = (key ?? {}) as { readonly run_id?: unknown };
    if (own.damaged !== undefined && run_id === own.damaged) {
      counts.damaged += 1;
      throw new RunwireError(damagedCode, `${own.damaged}, ${name}`);
    }
    if (own.failShare === 0 || random() >= own.failShare) return;
    counts.failed += 1;
    throw new RunwireError("KAI-SERVER-STORE-0001", `disk I/O error, ${name}`);
  }

  const own: Reads = {
    failShare: 0,
    damaged: undefined,
    counts,
    through(store, late) {
      const asked = Object.entries(store).map(([name, given]): [string, unknown] => {
        if (!questions.has(name)) return [name, given];
        const ask = given as (...args: readonly unknown[]) => Promise<unknown>;
        return [
          name,
          (...args: readonly unknown[]): Promise<unknown> => {
            const isStruck = isWriting();
            if (isStruck) awaits.struck("reading");
            try {
              fail(name, args);
            } catch (error) {
              return Promise.reject(error);
            }
            const answer = slowQuestions.has(name) ? late(ask(...args)) : ask(...args);
            return isStruck ? answer.finally(() => awaits.struck("read")) : answer;
          },
        ];
      });
      return Object.fromEntries(asked) as typeof store;
    },
  };
  return own;
}
