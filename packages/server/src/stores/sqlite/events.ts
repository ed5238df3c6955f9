// The events of a log, wherever they are: feeds in rows of their own, runs in memory while they are hot and in segments
// behind that.

import { isCore } from "@runwire/protocol";
import { isFeedLog, numbersIn, type Record, weightOf } from "../../log/record.js";
import { nothing, stretchOf, stretchOfRecords } from "../../log/stretch.js";
import type { Store } from "../../store.js";
import type { Catalogue } from "./catalogue.js";
import type { HeadOf } from "./compaction.js";
import type { Hot } from "./hot.js";
import type { SegmentReader } from "./segment-reader.js";

export interface EventParts {
  readonly runs: Catalogue;
  readonly segments: SegmentReader;
  readonly hot: Hot;
  readonly headOf: HeadOf;
}

/** Cuts of the hot part fall at multiples of this, so that readers share them. */
const cutEvents = 512;

export function events({
  runs,
  segments,
  hot,
  headOf,
}: EventParts): Pick<Store, "read" | "posOfSeq" | "oldest"> {
  return {
    async read({ tenant, run_id }, view, after, bytesMax) {
      // Whoever has far to go lets others come first: what is in memory would be read to its end in one turn of the loop.
      let head = headOf(tenant, run_id);
      if ((head?.views[view].pos ?? 0) - after > cutEvents) {
        await new Promise((resolve) => setImmediate(resolve));
        head = headOf(tenant, run_id);
      }
      if (head === undefined || after >= head.views[view].pos) return nothing;
      if (isFeedLog(run_id)) {
        // Of the batch that is being written the file may know already, and nobody else may.
        const upTo = Math.min(after + cutEvents, head.views[view].pos);
        const entries = runs.feedEvents(tenant, run_id, after, upTo, bytesMax);
        // Whoever is that far behind what is kept begins anew, and is told so.
        return entries[0]?.pos === after + 1 ? stretchOf(entries) : nothing;
      }
      const inMemory = hot.recordsOf(tenant, run_id, view);
      const oldest = inMemory[0];
      const first = oldest === undefined ? head.views[view].pos + 1 : numbersIn(oldest, run_id, view).pos;
      if (after + 1 < first) return segments.read(tenant, run_id, view, after);
      const from = after + 1 - first;
      const end = Math.min(inMemory.length, from + cutEvents - (after % cutEvents));
      let to = from;
      for (let bytes = 0; to < end; to++) {
        bytes += weightOf(inMemory[to] as Record);
        if (bytes > bytesMax && to > from) break;
      }
      return stretchOfRecords(inMemory.slice(from, to), run_id, view);
    },

    async posOfSeq({ tenant, run_id }, view, seq) {
      const head = headOf(tenant, run_id);
      if (head === undefined) return 0;
      const { pos, seq: last } = head.views[view];
      if (seq > last) return pos;
      const inMemory = hot.recordsOf(tenant, run_id, view);
      const numbersAt = (i: number) => numbersIn(inMemory[i] as Record, run_id, view);
      const oldest = inMemory[0];
      // An event of another type has the number of the one before it.
      const first = oldest === undefined ? last : numbersAt(0).seq - (isCore(oldest.type) ? 1 : 0);
      if (seq <= first) return segments.posOfSeq(tenant, run_id, view, seq);
      let low = 0;
      let high = inMemory.length;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (numbersAt(middle).seq < seq) low = middle + 1;
        else high = middle;
      }
      return numbersAt(low).pos;
    },

    oldest: async ({ tenant, run_id }) => (isFeedLog(run_id) ? runs.oldestOfFeed(tenant, run_id) : 1),
  };
}
