// Spilling on the write path. Whether something is written is decided inside the commit, and inside a commit nothing
// can wait for a disk. So a commit that meets blobs that are not stored is taken back, they are stored, and it is
// tried again. An append that is refused, or was stored before, thus mostly stores no blob at all.

import type { Draft } from "@runwire/protocol";
import type { Commit } from "../log/commit.js";
import { InDoubt, type Store } from "../store.js";
import { spillDraft } from "./attached.js";
import type { CountedBlobs } from "./counted.js";
import type { NewBlob, Spilled } from "./spill.js";

export type Append = Store["append"];

/** What is written changes from one try to the next only where a run has moved on in between. */
const triesMax = 10;

/** Thrown where a commit would refer to blobs that are not there yet. */
class NotStored extends Error {}

export function spilling(append: Append, blobs: CountedBlobs): Append {
  return async (key, decide) => {
    const held = new Set<string>();
    const missing = new Map<string, NewBlob>();
    // Of drafts that were large: the next try need not make texts and hashes of them again.
    const known = new Map<Draft, Spilled>();
    try {
      for (let tries = 1; ; tries++) {
        try {
          return await append(key, (commit) => {
            missing.clear();
            const value = decide(spillingCommit(commit, known, ({ blobs }) => note(blobs)));
            if (missing.size > 0) throw new NotStored("more blobs with every try");
            return value;
          });
        } catch (error) {
          // What may be stored after all refers to them: they stay held, and the next start knows.
          if (error instanceof InDoubt) held.clear();
          if (!(error instanceof NotStored) || tries === triesMax) throw error;
        }
        for (const ref of missing.keys()) held.add(ref);
        await blobs.hold(key.tenant, [...missing.values()]);
      }
    } finally {
      if (held.size > 0) await blobs.letGo(key.tenant, held);
    }

    function note(found: readonly NewBlob[]): void {
      for (const blob of found) if (!held.has(blob.ref)) missing.set(blob.ref, blob);
    }
  };
}

function spillingCommit(
  commit: Commit,
  known: Map<Draft, Spilled>,
  onSpilled: (spilled: Spilled) => void,
): Commit {
  function spilledOf(draft: Draft): Spilled | undefined {
    const spilled = known.get(draft) ?? spillDraft(draft);
    if (spilled !== undefined) known.set(draft, spilled);
    return spilled;
  }
  return {
    ...commit,
    write(run_id, draft) {
      const spilled = spilledOf(draft);
      if (spilled === undefined) {
        commit.write(run_id, draft);
        return;
      }
      onSpilled(spilled);
      // Without their content, which nobody needs once it is stored.
      const refs = spilled.blobs.map(({ ref, media_type, bytes }) => ({ ref, media_type, bytes }));
      commit.write(run_id, { ...draft, payload: spilled.payload } as Draft, refs);
    },
    asWritten(draft) {
      const spilled = spilledOf(draft);
      return commit.asWritten(
        spilled === undefined ? draft : ({ ...draft, payload: spilled.payload } as Draft),
      );
    },
  };
}
