// `Idempotency-Key`: a creation that is asked for again, because its answer was lost, is answered and not repeated.

import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isObject } from "@runwire/protocol";
import type { Idempotency } from "../log/run-record.js";
import { badParam } from "./check.js";

const keyPattern = /^[\x21-\x7e]{1,255}$/;

export const idempotencyHeader = {
  "Idempotency-Key": "a word of your own: the same request under it again is answered as the first was",
};

/** Undefined where the client sent no key. `what` tells requests under the same key apart. */
export function idempotencyOf(
  { headers }: IncomingMessage,
  ...what: readonly unknown[]
): Idempotency | undefined {
  return idempotencyFor(headers["idempotency-key"], ...what);
}

export function idempotencyFor(key: unknown, ...what: readonly unknown[]): Idempotency | undefined {
  if (key === undefined) return undefined;
  if (typeof key !== "string" || !keyPattern.test(key))
    throw badParam("the header `Idempotency-Key`", "takes 1 to 255 visible characters");
  return { key, digest: createHash("sha256").update(JSON.stringify(what, inOrder)).digest("base64url") };
}

/** Members in one order, at any depth: many clients keep none, and write them in another the second time. */
function inOrder(_name: string, value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Tells the client that it was answered before. */
export function replayedHeader({ replayed }: { readonly replayed?: true }): {
  readonly [name: string]: string;
} {
  return replayed === true ? { "Idempotency-Replayed": "true" } : {};
}
