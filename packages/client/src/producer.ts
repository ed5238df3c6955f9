// Writes a run from outside. Drafts are batched, one request is in flight at a time, and every batch carries
// (Producer-Id, Epoch, Seq), so that a batch whose answer was lost is sent again and stored once.
//
//   push ─▶ buffer ─▶ batch 41…57, in flight ─▶ stored up to 40
//             └ grows while a request is under way: the busier, the larger the batches

import {
  type Draft,
  flowOf,
  is,
  isFinal,
  isObject,
  isRunState,
  RunwireError,
  limits as wire,
} from "@runwire/protocol";
import { linkedAbort } from "./abort.js";
import { type Patience, persist } from "./backoff.js";
import { draftBuffer } from "./draft-buffer.js";
import { type Answer, askJson, clockOf, type Endpoint, runPath } from "./http.js";
import { limits } from "./limits.js";
import { type Identity, takeUp } from "./producer-identity.js";

export interface ProducerOptions extends Endpoint {
  readonly run_id: string;
  /** Given by a producer that may come back after a crash; otherwise one is made up. */
  readonly producer_id?: string;
  /**
   * How many of its drafts were stored when it decided what to push next (`last_producer_seq`). If its former life had
   * another one on the way, that is refused with `KAI-PRODUCER-GAP-0001` and nothing is stored twice: ask again. Without
   * it, what is pushed comes after whatever is stored by then.
   */
  readonly after?: number;
  /** A higher epoch shuts out the lower ones. Without it, one above those of all lives that began before. */
  readonly epoch?: number;
  /** The lease the run was created with; asked for where it is not given. */
  readonly lease_ms?: number;
  readonly lingerMs?: number;
  /** Attempts in a row that may fail. Without it, only the run's lease ends the trying. */
  readonly attemptsMax?: number;
  /** Gives up what is not stored yet. */
  readonly signal?: AbortSignal;
  /**
   * Whether the run goes on without a draft that was refused. The server refuses all that it was sent with, so smaller
   * batches are tried until it is alone, and then it is given up. Without this, a refusal ends the producer.
   */
  readonly mayGiveUp?: (draft: Draft, error: RunwireError) => boolean;
  readonly onGivenUp?: (draft: Draft, error: RunwireError) => void;
  readonly random?: () => number;
}

export interface Producer {
  /**
   * Takes a draft. Gives a promise when the buffer is full, to be awaited before the next; throws why when
   * this producer can write no more.
   */
  push(draft: Draft): Promise<void> | undefined;
  /** Sends what waits at once; resolves when all that was pushed so far is stored. */
  flush(): Promise<void>;
  /** Flushes, and renews the lease no more. Ending the run is a draft like any other. */
  close(): Promise<void>;
  /** Aborts when this producer can write no more (fenced, run ended, refused, closed), with the reason. */
  readonly signal: AbortSignal;
}

export function openProducer(options: ProducerOptions): Producer {
  const clock = clockOf(options);
  const lingerMs = options.lingerMs ?? limits.lingerMs;
  const over = linkedAbort(options.signal);
  const buffer = draftBuffer(over.signal);
  const patience: Patience = {
    clock,
    random: options.random ?? Math.random,
    signal: over.signal,
    attemptsMax: options.attemptsMax ?? Number.POSITIVE_INFINITY,
  };
  let identity: Identity | undefined;
  /** Halved by a refusal that one draft may have caused, doubled by what is stored. */
  let batchMax = Number.POSITIVE_INFINITY;
  let sending = false;
  let closing: Promise<void> | undefined;
  let ending = false;
  let cancelLinger: (() => void) | undefined;
  let cancelBeat = () => {};
  // Unless given, it is learnt from the first heartbeat.
  let leaseMs = options.lease_ms;

  async function persistently<T>(ask: () => Promise<Answer<T>>): Promise<T> {
    const answer = await persist(ask, patience);
    if (!answer.ok) throw answer.error;
    return answer.value;
  }

  function send(path: string, headers: { readonly [name: string]: string }, body: string): Promise<unknown> {
    const call = {
      method: "POST" as const,
      path: runPath(options.run_id, path),
      headers,
      body,
      signal: over.signal,
    };
    return persistently(() => askJson(options, call));
  }

  async function sendBatch(by: Identity, batch: readonly string[]): Promise<void> {
    try {
      await send("/events", by.nextHeaders(), `[${batch.join(",")}]`);
    } catch (error) {
      const drafts = batch.map((text) => JSON.parse(text) as Draft);
      if (!(error instanceof RunwireError) || !drafts.some((draft) => options.mayGiveUp?.(draft, error)))
        throw error;
      batchMax = Math.max(1, Math.floor(batch.length / 2));
      const [alone, another] = drafts;
      if (alone === undefined || another !== undefined) return;
      // It has no number: the next draft takes it.
      buffer.remove(1);
      options.onGivenUp?.(alone, error);
      return;
    }
    batchMax *= 2;
    by.stored(batch.length);
    buffer.remove(batch.length);
  }

  /** Sends until nothing waits; with nothing to send, says at least that the producer lives. */
  async function work(beat: boolean): Promise<void> {
    if (sending || over.signal.aborted || (!beat && buffer.isEmpty())) return;
    sending = true;
    cancelLinger?.();
    cancelLinger = undefined;
    cancelBeat();
    let owed = beat;
    try {
      identity ??= await persistently(() => takeUp(options, patience));
      for (;;) {
        if (!buffer.isEmpty()) {
          await sendBatch(identity, buffer.peek(batchMax));
          owed = leaseMs === undefined;
        } else if (owed && !ending) {
          leaseMs = renewed(await send("/heartbeat", identity.headers, "{}"), options.run_id);
          owed = false;
        } else break;
      }
      if (!ending && !over.signal.aborted) rest();
    } catch (error) {
      over.abort(error);
    } finally {
      sending = false;
    }
  }

  function rest(): void {
    cancelBeat = clock.after((leaseMs ?? 0) / 3, () => void work(true));
  }

  // Cleared here and not in `work`, which may have nothing to do: the next delta must set it again.
  function lingered(): void {
    cancelLinger = undefined;
    void work(false);
  }

  function push(draft: Draft): Promise<void> | undefined {
    over.signal.throwIfAborted();
    if (closing !== undefined) throw new Error("the producer is closed");
    const isLast = endsRun(draft);
    const room = buffer.add(JSON.stringify(draft));
    // What was not taken ends nothing: the lease is still to be renewed.
    ending ||= isLast;
    // Pushes of one turn still share a request: the work begins after it.
    if (flowOf(draft.type) === "control" || buffer.holdsBatch()) queueMicrotask(() => void work(false));
    else cancelLinger ??= clock.after(lingerMs, lingered);
    return room;
  }

  async function flush(): Promise<void> {
    over.signal.throwIfAborted();
    void work(false);
    await buffer.drained();
  }

  function stop(): void {
    over.abort(new Error("the producer is closed"));
  }

  // A timer that is left would keep a process from ending, and a link that is left, this producer in memory.
  over.signal.addEventListener("abort", () => {
    cancelLinger?.();
    cancelBeat();
    over.unlink();
  });
  if (!over.signal.aborted) rest();
  return {
    push,
    flush,
    close() {
      closing ??= flush().then(stop);
      return closing;
    },
    signal: over.signal,
  };
}

/** After its own terminal event a run has no lease to renew. */
function endsRun(draft: Draft): boolean {
  return draft.child_id == null && is(draft, "run.lifecycle") && isFinal(draft.payload.state);
}

/** The lease that a heartbeat has renewed. Throws where the run has ended: there is none, and nothing more to write. */
function renewed(answer: unknown, run_id: string): number {
  const { lease_ms, state } = isObject(answer) ? answer : {};
  if (isRunState(state) && isFinal(state))
    throw new RunwireError("KAI-RUN-ENDED-0001", `${run_id} is ${state}`);
  return typeof lease_ms === "number" ? lease_ms : wire.leaseMsDefault;
}
