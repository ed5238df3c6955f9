// An agent that takes every run and says no more of it than it is told to: for tests of how runs begin.

import type { Draft } from "@runwire/protocol";

interface Run {
  readonly tenant: string;
  readonly run_id: string;
}

interface Restored {
  readonly run_id: string;
  settle(outcome: string): Promise<void>;
}

interface Mute {
  /** Throws where it does not take a run. */
  check(asked: { readonly model: string | null }): Promise<void>;
  restore?(): Promise<Restored | undefined>;
  readonly says?: readonly Draft[];
}

interface Host {
  readonly writer: { append(run: Run, drafts: readonly Draft[]): Promise<unknown> };
}

export function muteAgent({ check, restore = async () => undefined, says = [] }: Mute) {
  return ({ writer }: Host) => ({
    planningGate: () => "off" as const,
    take(run: Run) {
      // Where it has ended by then there is nothing more to say.
      if (says.length > 0) writer.append(run, says).catch(() => {});
    },
    checkpoints: { kept: async () => new Map<string, number>(), restore },
    forget: async () => {},
    sweep: async () => {},
    check,
    checkInput: async () => {},
    close: async () => {},
  });
}
