// Further runs of a pipe, which a server that is away or full keeps waiting.

import { type Clock, wait } from "@runwire/client";
import { RunwireError } from "@runwire/protocol";

export interface CreatedOptions {
  /** Whether what may pass is waited for. */
  readonly isPatient: boolean;
  /** Whether runs of this pipe are open, whose ends may stand behind what waits. */
  isHolding(): boolean;
  readonly clock: Clock;
}

const retryMs = 1000;
/** Room that others make comes within this, or not; what we hold ourselves would never be given back. */
const roomMsMax = 60_000;

export async function created<T>(
  create: () => Promise<T>,
  { isPatient, isHolding, clock }: CreatedOptions,
): Promise<T> {
  let fullSinceMs: number | null = null;
  for (;;) {
    try {
      return await create();
    } catch (error) {
      if (!isPatient || !(error instanceof RunwireError) || !error.row.retry) throw error;
      const isFull = error.code === "KAI-LIMIT-RUNS-0001" && isHolding();
      fullSinceMs = isFull ? (fullSinceMs ?? clock.nowMs()) : null;
      if (fullSinceMs !== null && clock.nowMs() - fullSinceMs >= roomMsMax) throw error;
      await wait(clock, retryMs);
    }
  }
}
