// Transcripts at any point of a log. A fold starts at the nearest kept transcript; one is kept only beyond the last,
// when the log has grown by that transcript's own size since, so keeping them stays linear in the log. Who asks for one
// while somebody folds it is given that one.

import { emptyTranscript, reduceAll, type Transcript, type View } from "@runwire/protocol";
import { weightOf } from "./log/record.js";
import { stretches } from "./reading.js";
import type { RunKey, Store } from "./store.js";

export interface Transcripts {
  /** The transcript up to a position, or up to the head where that comes first; 410 where the log goes meanwhile. */
  at(key: RunKey, view: View, pos: number): Promise<Transcript>;
}

const keepBytesMin = 64 * 1024;

export function transcripts(store: Store): Transcripts {
  const folding = new Map<string, Promise<Transcript>>();

  function at(key: RunKey, view: View, pos: number): Promise<Transcript> {
    const name = `${key.tenant}/${key.run_id}/${view}/${pos}`;
    const known = folding.get(name);
    if (known !== undefined) return known;
    const folded = fold(key, view, pos).finally(() => folding.delete(name));
    folding.set(name, folded);
    return folded;
  }

  async function fold(key: RunKey, view: View, pos: number): Promise<Transcript> {
    const kept = await store.snapshotBefore(key, view, pos);
    let transcript: Transcript =
      kept === undefined
        ? emptyTranscript(key.run_id)
        : // One that an older program has kept lacks what that did not know.
          { ...emptyTranscript(key.run_id), ...(JSON.parse(kept.transcriptText) as Transcript) };
    let grownBytes = 0;
    for await (const events of stretches(store, key, view, { after: transcript.pos, to: pos })) {
      transcript = reduceAll(transcript, events);
      for (const e of events) grownBytes += weightOf(e);
    }
    if (grownBytes > keepBytesMin) await keep(key, view, transcript, grownBytes);
    return transcript;
  }

  async function keep(key: RunKey, view: View, transcript: Transcript, grownBytes: number): Promise<void> {
    const text = JSON.stringify(transcript);
    // A full disk must not fail a read.
    if (grownBytes >= text.length) await store.keepSnapshot(key, view, transcript.pos, text).catch(() => {});
  }

  return { at };
}
