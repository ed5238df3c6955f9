// A blob lives as long as a run refers to it. The store counts: its rows are written in the commit of the event that
// refers, and dropped in the commit that erases a tree. Here is what happens between the two and the bytes:
//
//   put ─▶ commit        a blob is there before anything refers to it, and is held until that is decided
//   refused, or erased   a blob that nobody refers to or holds is removed
//   in doubt             it is held for good: the next start knows whether something refers to it
//
// All that happens to one blob happens in turn. Whoever removes looks first whether it is held, and whoever holds
// says so before its turn comes: so the same bytes, stored by one while another erases or is refused, are there in
// the end if and only if somebody refers to them. What a crash leaves is removed at the next start.

import type { BlobRef } from "../log/record.js";
import type { Store } from "../store.js";
import { turns } from "../turns.js";
import type { NewBlob } from "./spill.js";
import { type BlobKey, type Blobs, type ByteRange, isBlobRef, type OpenBlob } from "./store.js";

export interface CountedBlobs {
  /** Stores blobs. Until they are let go nobody removes them. */
  hold(tenant: string, blobs: readonly NewBlob[]): Promise<void>;
  /** Lets go what was held once, and removes what nobody refers to. */
  letGo(tenant: string, refs: Iterable<string>): Promise<void>;
  /** Removes those that nobody refers to. */
  drop(tenant: string, refs: readonly string[]): Promise<void>;
  /** A blob that a run of this tenant refers to. */
  find(tenant: string, ref: string): Promise<BlobRef | undefined>;
  open(tenant: string, ref: string, range?: ByteRange): Promise<OpenBlob | undefined>;
  /** Removes what a crash has left; others may go on meanwhile. What cannot go keeps nothing else, and is told then. */
  clean(): Promise<void>;
  /** Ends the cleaning. */
  close(): void;
}

/** Of one erasing: a batch of old trees may have any number of blobs. */
const removesAtOnceMax = 64;

export function countedBlobs(blobs: Blobs, store: Pick<Store, "blob">): CountedBlobs {
  const holders = new Map<string, number>();
  const { take } = turns();
  let closed = false;

  const nameOf = ({ tenant, ref }: BlobKey): string => `${tenant}/${ref}`;

  const inTurn = ({ tenant, ref }: BlobKey, job: () => Promise<void>): Promise<void> =>
    take(tenant, ref, job);

  const removeUnreferred = (key: BlobKey): Promise<void> =>
    inTurn(key, async () => {
      if (holders.has(nameOf(key)) || (await store.blob(key.tenant, key.ref)) !== undefined) return;
      // Whoever came while the store was asked waits for its turn, and puts it back.
      await blobs.remove(key);
    });

  return {
    async hold(tenant, list) {
      const puts = list.map(({ ref, content }) => {
        const key = { tenant, ref };
        holders.set(nameOf(key), (holders.get(nameOf(key)) ?? 0) + 1);
        return inTurn(key, () => blobs.put(key, content));
      });
      await Promise.all(puts);
    },

    async letGo(tenant, refs) {
      const keys = [...refs].map((ref) => ({ tenant, ref }));
      for (const key of keys) {
        const others = (holders.get(nameOf(key)) ?? 1) - 1;
        if (others === 0) holders.delete(nameOf(key));
        else holders.set(nameOf(key), others);
      }
      // What is committed is committed, whatever happens here; what could not be removed is so at the next start.
      await Promise.allSettled(keys.map(removeUnreferred));
    },

    async drop(tenant, refs) {
      // Nobody asks for these again: one that cannot be removed keeps no other from going.
      const failures: unknown[] = [];
      for (let from = 0; from < refs.length; from += removesAtOnceMax) {
        const some = refs.slice(from, from + removesAtOnceMax);
        const removed = await Promise.allSettled(some.map((ref) => removeUnreferred({ tenant, ref })));
        for (const one of removed) if (one.status === "rejected") failures.push(one.reason);
      }
      if (failures.length > 0) throw failures[0];
    },

    find: async (tenant, ref) => (isBlobRef(ref) ? store.blob(tenant, ref) : undefined),
    open: (tenant, ref, range) => blobs.open({ tenant, ref }, range),

    async clean() {
      let failure: unknown;
      const failed = (error: unknown): void => {
        failure ??= error;
      };
      try {
        for await (const key of blobs.list()) {
          if (closed) break;
          await removeUnreferred(key).catch(failed);
        }
      } catch (error) {
        failed(error);
      }
      if (failure !== undefined) throw failure;
    },
    close() {
      closed = true;
    },
  };
}
