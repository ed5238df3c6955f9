// Who writes, and which number comes next: what makes a retry harmless and shuts out an older self.

import { isObject } from "@runwire/protocol";
import type { Patience } from "./backoff.js";
import { type Answer, askJson, type Endpoint, type HeaderFields, runPath } from "./http.js";

export interface Identity {
  readonly headers: HeaderFields;
  /** For a batch that begins with the next event. */
  nextHeaders(): HeaderFields;
  stored(count: number): void;
}

export interface IdentityOptions extends Endpoint {
  readonly run_id: string;
  readonly producer_id?: string;
  readonly epoch?: number;
  readonly after?: number;
}

/** Of one producer, in the same millisecond. */
const livesMax = 100;

/** A made-up producer is new by itself; a named one asks how far its last life came. */
export async function takeUp(options: IdentityOptions, patience: Patience): Promise<Answer<Identity>> {
  const { producer_id, run_id, epoch, after } = options;
  if (producer_id === undefined) {
    return { ok: true, value: identity(madeUpId(patience.random), epoch ?? 1, 0) };
  }
  const path = runPath(run_id, `/producers/${encodeURIComponent(producer_id)}`);
  const answer = await askJson(options, { path, signal: patience.signal });
  if (!answer.ok) return answer;
  const last = isObject(answer.value) ? answer.value : {};
  const lastEpoch = typeof last.epoch === "number" ? last.epoch : 0;
  const lastSeq = typeof last.last_producer_seq === "number" ? last.last_producer_seq : 0;
  // Numbers go on across epochs.
  return {
    ok: true,
    value: identity(producer_id, epoch ?? epochAfter(lastEpoch, patience), after ?? lastSeq),
  };
}

/**
 * By the time: a life before this one may have written nothing yet, so that the last epoch would be followed by the same
 * for both, and neither would be shut out. Chance tells apart what a clock does not.
 */
function epochAfter(lastEpoch: number, { clock, random }: Patience): number {
  return Math.max(lastEpoch, clock.nowMs() * livesMax) + 1 + Math.floor(random() * livesMax);
}

function identity(producer_id: string, epoch: number, lastSeq: number): Identity {
  let seq = lastSeq;
  const headers = { "producer-id": producer_id, "producer-epoch": String(epoch) };
  return {
    headers,
    nextHeaders: () => ({ ...headers, "producer-seq": String(seq + 1) }),
    stored(count) {
      seq += count;
    },
  };
}

function madeUpId(random: () => number): string {
  const part = () => Math.floor(random() * 2 ** 52).toString(36);
  return `producer-${part()}${part()}`;
}
