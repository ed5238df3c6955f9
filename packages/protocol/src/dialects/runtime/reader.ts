// Reads a stream as it comes: twice, in the wrong order, with gaps and snapshots. What comes early waits in a small
// window for what is missing; what comes late is applied late; nothing is thrown away but what was read already.

import type { Facts } from "../../events.js";
import { limits } from "../../limits.js";
import { isObject } from "../../parse.js";
import { sameJson } from "../../same-json.js";
import { emptyRuntimeModel, type RuntimeModel, readInto } from "./model.js";
import { repaired, snapshotIn } from "./repair.js";
import type { RuntimeMessage } from "./types.js";
import { validateRuntime } from "./validate.js";

export interface RuntimeReading {
  /** The messages that changed the model, in the order in which they did. */
  readonly applied: readonly RuntimeMessage[];
  /** What a `runtime.warning` would say. */
  readonly warnings: readonly RuntimeWarning[];
}

export interface RuntimeWarning extends Facts {
  readonly code: "malformed" | "duplicate_differs" | "gap" | "unknown_version";
  readonly eventId: string | null;
}

export interface RuntimeReader {
  readonly model: RuntimeModel;
  read(message: unknown): RuntimeReading;
  /** Nothing comes any more: what waits is applied, gaps and all. */
  end(): RuntimeReading;
}

/** `after` is the number that was read before; without one, the first message that comes is the first. */
export function runtimeReader({
  after,
  windowMax = limits.messagesEarlyMax,
}: {
  readonly after?: number;
  readonly windowMax?: number;
} = {}): RuntimeReader {
  let model: RuntimeModel = emptyRuntimeModel;
  let next = after === undefined ? undefined : after + 1;
  const waiting = new Map<number, RuntimeMessage[]>();
  let waits = 0;
  // In the order in which they came; the oldest are forgotten first.
  const seen = new Map<string, RuntimeMessage>();

  function apply(message: RuntimeMessage, done: Done): void {
    const snapshot = snapshotIn(message);
    if (snapshot === undefined) model = readInto(model, message);
    else {
      model = repaired(model, snapshot, message);
      next = model.lastSequence + 1;
    }
    const recovery = isObject(message.payload) ? message.payload.recovery : undefined;
    if (message.type.startsWith("snapshot.") && isObject(recovery)) model = { ...model, recovery };
    done.applied.push(message);
  }

  /** Applies what waits, from the lowest number, up to one. */
  function release(upTo: number, done: Done): void {
    for (const number of [...waiting.keys()].sort((a, b) => a - b)) {
      if (number > upTo) return;
      if (next !== undefined && number > next)
        done.warnings.push({ code: "gap", eventId: null, gapFrom: next, gapTo: number - 1 });
      const messages = waiting.get(number) ?? [];
      waiting.delete(number);
      waits -= messages.length;
      next = Math.max(next ?? 0, number + 1);
      for (const message of messages) apply(message, done);
    }
  }

  /** What has become next by what was applied. */
  function releaseNext(done: Done): void {
    while (next !== undefined && waiting.has(next)) release(next, done);
  }

  function take(message: RuntimeMessage, done: Done): void {
    const { sequence } = message;
    const snapshot = snapshotIn(message);
    if (snapshot !== undefined) {
      // Whatever it covers and is here is read before it, so that it cannot be erased unread.
      release(typeof snapshot.lastSequence === "number" ? snapshot.lastSequence : (sequence ?? 0), done);
      apply(message, done);
      releaseNext(done);
      return;
    }
    if (sequence === undefined) {
      apply(message, done);
      return;
    }
    next ??= sequence;
    if (sequence <= next) {
      next = Math.max(next, sequence + 1);
      apply(message, done);
      releaseNext(done);
      return;
    }
    waiting.set(sequence, [...(waiting.get(sequence) ?? []), message]);
    waits += 1;
    if (waits > windowMax) {
      release(Math.min(...waiting.keys()), done);
      releaseNext(done);
    }
  }

  return {
    get model() {
      return model;
    },
    read(given) {
      const done: Done = { applied: [], warnings: [] };
      const [violation] = validateRuntime(given);
      if (violation !== undefined) {
        done.warnings.push({ code: "malformed", eventId: null, ...violation });
        return done;
      }
      const message = given as RuntimeMessage;
      const { eventId, schemaVersion } = message;
      const known = seen.get(eventId);
      if (known !== undefined) {
        if (!sameJson(known, message)) done.warnings.push({ code: "duplicate_differs", eventId });
        return done;
      }
      seen.set(eventId, message);
      for (const [oldest] of seen) {
        if (seen.size <= limits.messagesSeenMax) break;
        seen.delete(oldest);
      }
      if (schemaVersion !== undefined && !/^(?:.*-)?0\./.test(schemaVersion))
        done.warnings.push({ code: "unknown_version", eventId, schemaVersion });
      take(message, done);
      return done;
    },
    end() {
      const done: Done = { applied: [], warnings: [] };
      release(Number.POSITIVE_INFINITY, done);
      return done;
    },
  };
}

interface Done {
  readonly applied: RuntimeMessage[];
  readonly warnings: RuntimeWarning[];
}
