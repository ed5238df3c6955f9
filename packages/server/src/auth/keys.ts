// Credentials that are API keys. The ring is the key file in memory; it follows the file, so that a key works and
// stops working without a restart.

import { timingSafeEqual } from "node:crypto";
import { statSync } from "node:fs";
import { RunwireError } from "@runwire/protocol";
import type { Clock } from "../clock.js";
import type { Caller, Credentials, Scope } from "./caller.js";
import { hashKey, keyId } from "./key.js";
import { type KeyRecord, readKeys } from "./key-file.js";

interface RingKey {
  readonly caller: Caller;
  readonly hash: Buffer;
  readonly isRevoked: boolean;
}

const lookEveryMs = 500;
/** Compared with where there is no such key, so that an id cannot be found out by the clock. */
const nobodysHash = Buffer.alloc(32);

/**
 * Throws where the file is broken from the start. Later it keeps the last good ring, and says so. `read` is for tests
 * that let it fail.
 */
export function keyRing(
  path: string,
  clock: Clock,
  onTrouble: (problem: string) => void,
  read = readKeys,
): Credentials {
  let seen = stampOf(path);
  let ring = ringOf(read(path));
  let told = "";

  function look(): void {
    const stamp = stampOf(path);
    if (stamp === seen) return;
    try {
      ring = ringOf(read(path));
      // Only now: what could not be read, perhaps for want of a file descriptor, is tried again at the next look.
      seen = stamp;
      // Without its file a server lets nobody in: that is what who deletes it means.
      if (stamp === "missing") onTrouble(`${path} is gone, and with it every key`);
    } catch (error) {
      tellOnce(stamp, `${(error as Error).message}; the keys read before stay in force`);
    }
  }

  function tellOnce(stamp: string, problem: string): void {
    const trouble = `${stamp} ${problem}`;
    if (trouble !== told) onTrouble(problem);
    told = trouble;
  }
  const looking = setInterval(look, lookEveryMs);
  looking.unref();

  return {
    async check(token) {
      const id = keyId(token);
      if (id === undefined) throw new RunwireError("KAI-AUTH-TOKEN-0002");
      const found = ring.get(id);
      const isRight = timingSafeEqual(Buffer.from(hashKey(token), "hex"), found?.hash ?? nobodysHash);
      if (found === undefined || !isRight) throw new RunwireError("KAI-AUTH-TOKEN-0002");
      // Told only to who has the whole key.
      if (found.isRevoked) throw new RunwireError("KAI-AUTH-TOKEN-0003", `key ${id} was revoked`);
      if (hasEnded(found)) throw new RunwireError("KAI-AUTH-TOKEN-0003", `key ${id} has expired`);
      return found.caller;
    },
    isRevoked(credential) {
      const found = ring.get(credential.replace(/^key:/, ""));
      return found === undefined || hasEnded(found);
    },
    close: () => clearInterval(looking),
  };

  function hasEnded({ caller, isRevoked }: RingKey): boolean {
    return isRevoked || clock.now() >= caller.endsMs;
  }
}

function ringOf(keys: readonly KeyRecord[]): ReadonlyMap<string, RingKey> {
  return new Map(
    keys.map((key) => {
      const caller: Caller = {
        tenant: key.tenant,
        scopes: new Set<Scope>(key.scopes),
        credential: `key:${key.id}`,
        endsMs: key.expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(key.expires_at),
      };
      return [key.id, { caller, hash: Buffer.from(key.hash, "hex"), isRevoked: key.revoked_at !== null }];
    }),
  );
}

/** Differs whenever the file does: commands rename a new one into place, editors write into the old one. */
function stampOf(path: string): string {
  try {
    const { ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [ino, size, mtimeNs, ctimeNs].join();
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? "missing" : String(error);
  }
}
