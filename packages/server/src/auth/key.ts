// Making and taking back API keys.
//
//   rw_k3v7q2mzn4xa_4pJ0…43 characters…Zq
//   │  │            └ secret: 32 random bytes, base 62, so that a double click selects the whole key
//   │  └ id: says which key it is, in lists, logs and metrics
//   └ prefix: secret scanners find rw_[a-z2-7]{12}_[0-9A-Za-z]{43}

import { createHash, randomBytes } from "node:crypto";
import type { Scope } from "./caller.js";
import { changeKeys, type KeyRecord } from "./key-file.js";

export interface KeyWish {
  readonly tenant: string;
  readonly scopes: readonly Scope[];
  readonly name: string;
  /** How long it is good; undefined is for ever. */
  readonly lifeMs: number | undefined;
}

const keyPattern = /^rw_([a-z2-7]{12})_[0-9A-Za-z]{43}$/;
const base32 = "abcdefghijklmnopqrstuvwxyz234567";
const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const keysMax = 10_000;

/** The key is shown now and never again: only its hash is kept. */
export function createKey(
  path: string,
  wish: KeyWish,
  nowMs: number,
): { readonly key: string; readonly record: KeyRecord } {
  const id = Array.from(randomBytes(12), (byte) => base32[byte % 32]).join("");
  const key = `rw_${id}_${inBase62(randomBytes(32))}`;
  const record: KeyRecord = {
    id,
    tenant: wish.tenant,
    scopes: wish.scopes,
    name: wish.name,
    created_at: new Date(nowMs).toISOString(),
    expires_at: wish.lifeMs === undefined ? null : new Date(nowMs + wish.lifeMs).toISOString(),
    revoked_at: null,
    hash: hashKey(key),
  };
  changeKeys(path, (keys) => {
    const kept = keys.length < keysMax ? keys : keys.filter((one) => isGood(one, nowMs));
    if (kept.length >= keysMax)
      throw new Error(`${path} is full: it holds ${keysMax} keys; revoke some that nobody needs`);
    return [...kept, record];
  });
  return { key, record };
}

/** Whoever comes with one that is not is refused, whether or not it is still known. */
function isGood({ expires_at, revoked_at }: KeyRecord, nowMs: number): boolean {
  return revoked_at === null && (expires_at === null || Date.parse(expires_at) > nowMs);
}

/** Undefined where there is no such key. One that was revoked before keeps its time. */
export function revokeKey(path: string, id: string, nowMs: number): KeyRecord | undefined {
  const revoked_at = new Date(nowMs).toISOString();
  const isIt = (key: KeyRecord): boolean => key.id === id && key.revoked_at === null;
  const keys = changeKeys(path, (before) =>
    before.some(isIt) ? before.map((key) => (isIt(key) ? { ...key, revoked_at } : key)) : before,
  );
  return keys.find((key) => key.id === id);
}

/** The id of a well-formed key. */
export function keyId(key: string): string | undefined {
  return keyPattern.exec(key)?.[1];
}

/**
 * A fast hash is right here. Slow ones protect what people choose, which can be guessed; nobody guesses 256 random
 * bits, and every request is checked.
 */
export function hashKey(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}

function inBase62(bytes: Buffer): string {
  let rest = BigInt(`0x${bytes.toString("hex")}`);
  let text = "";
  while (text.length < 43) {
    text = base62[Number(rest % 62n)] + text;
    rest /= 62n;
  }
  return text;
}
