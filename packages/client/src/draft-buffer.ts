// What a producer has taken and the server has not stored yet, as JSON texts in order. It is bounded: a full
// buffer makes the caller wait, and a caller that does not wait is refused in the end.

import { RunwireError } from "@runwire/protocol";
import { limits } from "./limits.js";

export interface DraftBuffer {
  /** Takes a text; gives a promise of room when the buffer is full. */
  add(text: string): Promise<void> | undefined;
  isEmpty(): boolean;
  /** Whether there is enough for a batch of the largest size. */
  holdsBatch(): boolean;
  /** The next batch, of so many at most. It stays until it is removed, so that a retry sends the very same. */
  peek(countMax: number): readonly string[];
  /** Those that come first are stored, or given up. */
  remove(count: number): void;
  /** When all that it holds now is stored; rejects when the signal aborts. */
  drained(): Promise<void>;
}

interface Waiter {
  /** Resolved when this many texts are stored in all. */
  readonly storedMin: number;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

export function draftBuffer(over: AbortSignal): DraftBuffer {
  const texts: string[] = [];
  const waiters = new Set<Waiter>();
  let chars = 0;
  let storedCount = 0;

  over.addEventListener("abort", () => {
    for (const waiter of waiters) waiter.reject(over.reason);
    waiters.clear();
  });

  function fullness(): number {
    return Math.max(texts.length / limits.bufferEventsMax, chars / limits.bufferCharsMax);
  }

  function storedUpTo(storedMin: number): Promise<void> {
    return new Promise((resolve, reject) => waiters.add({ storedMin, resolve, reject }));
  }

  return {
    add(text) {
      if (fullness() >= limits.bufferOverrunMax) {
        throw new RunwireError(
          "KAI-REQUEST-SIZE-0001",
          `${texts.length} drafts are unsent; await what push gives`,
        );
      }
      texts.push(text);
      chars += text.length;
      if (fullness() < 1) return undefined;
      const room = storedUpTo(storedCount + 1);
      // A caller that does not wait learns of the end from its next push, not from a crash.
      room.catch(() => {});
      return room;
    },
    isEmpty: () => texts.length === 0,
    holdsBatch: () => texts.length >= limits.batchEventsMax || chars >= limits.batchCharsMax,
    peek(countMax) {
      const max = Math.min(texts.length, limits.batchEventsMax, countMax);
      let count = 0;
      for (let batchChars = 0; count < max; count++) {
        batchChars += texts[count]?.length ?? 0;
        if (count > 0 && batchChars > limits.batchCharsMax) break;
      }
      return texts.slice(0, count);
    },
    remove(count) {
      for (const text of texts.splice(0, count)) chars -= text.length;
      storedCount += count;
      for (const waiter of waiters) {
        if (waiter.storedMin > storedCount) continue;
        waiters.delete(waiter);
        waiter.resolve();
      }
    },
    drained: () => (texts.length === 0 ? Promise.resolve() : storedUpTo(storedCount + texts.length)),
  };
}
