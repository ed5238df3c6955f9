// What a stream begins with that is asked for the transcript first: folded, said and framed once for all who come at the
// same time, and for those who come soon after. Of a live run these are told a point a little before its head: the stream
// goes on from there anyway, and otherwise every commit would make another.

import type { EncoderState, View } from "@runwire/protocol";
import { heldBytes } from "./held.js";
import { type Head, isEnded } from "./log/head.js";
import { alone } from "./range.js";
import type { Rooms } from "./rooms.js";
import type { Wire } from "./wire.js";

export interface Snapshot {
  readonly pos: number;
  /** The dialect's own number there, and its state. */
  readonly number: number;
  readonly state: EncoderState;
  /** Of all readers: a socket that takes no more holds these, and no copy. */
  readonly bytes: Buffer;
}

export interface Snapshots {
  /**
   * Of a run that has ended, all but its last event: every reader hears the end itself. `heard` is the dialect's own number
   * up to which the client says it has heard; no snapshot that others had takes it back behind that.
   */
  of(head: Head, view: View, wire: Wire, heard: number | undefined): Promise<Snapshot>;
  /** Runs of this tenant were erased. */
  forget(tenant: string): void;
}

/** Of all runs together. */
const snapshotsBytesMax = 64 * 1024 * 1024;
/** A live run's is told until so much has come since, as a part of what it holds. */
const behindPart = 1 / 16;

interface Kept {
  readonly pos: number;
  readonly made: Promise<Snapshot>;
  /** Of memory; none while it is made. */
  bytes: number;
}

export function snapshots(
  rooms: Pick<Rooms, "clock" | "encodings"> & { readonly transcripts: Pick<Rooms["transcripts"], "at"> },
): Snapshots {
  const kept = new Map<string, Kept>();
  let bytes = 0;

  async function make(head: Head, view: View, wire: Wire, pos: number, heard?: number): Promise<Snapshot> {
    const { dialect } = wire;
    const { cursor } = dialect;
    const now = new Date(rooms.clock.now()).toISOString();
    const transcript = await rooms.transcripts.at(head.run, view, pos);
    const isOwn = typeof cursor === "object";
    const state = isOwn ? await rooms.encodings.at(head.run, view, dialect, pos) : dialect.first;
    const number = isOwn ? cursor.last(state) : transcript[cursor];
    const said = heard === undefined ? {} : { heard };
    const messages = dialect.open(state, { how: "snapshot", transcript, now, ...said });
    return { pos, number, state, bytes: alone(wire.frame(messages)) };
  }

  function keep(name: string, pos: number, made: Promise<Snapshot>): Promise<Snapshot> {
    drop(name);
    const own: Kept = { pos, made, bytes: 0 };
    kept.set(name, own);
    made.then(
      (snapshot) => {
        // Forgotten while it was made, or followed by a later one.
        if (kept.get(name) !== own) return;
        own.bytes = snapshot.bytes.length + heldBytes(snapshot.state) + 2 * name.length;
        bytes += own.bytes;
        dropOldest();
      },
      () => {
        if (kept.get(name) === own) drop(name);
      },
    );
    return made;
  }

  function drop(name: string): void {
    bytes -= kept.get(name)?.bytes ?? 0;
    kept.delete(name);
  }

  function dropOldest(): void {
    for (const [oldest, { bytes: own }] of kept) {
      if (bytes <= snapshotsBytesMax) break;
      if (own > 0) drop(oldest);
    }
  }

  return {
    async of(head, view, wire, heard) {
      const { tenant, run_id } = head.run;
      const hasEnded = isEnded(head);
      const pos = head.views[view].pos - (hasEnded ? 1 : 0);
      // A dialect with numbers of its own tells the client what it has missed.
      const told = typeof wire.dialect.cursor === "object" ? heard : undefined;
      const name = `${tenant}/${run_id}/${view}/${wire.name}/${told ?? ""}`;
      const near = kept.get(name);
      if (near !== undefined && pos - near.pos <= (hasEnded ? 0 : near.pos * behindPart)) {
        const snapshot = await near.made;
        if (heard === undefined || heard <= snapshot.number) return snapshot;
      }
      // Somebody else may have made it meanwhile.
      const known = kept.get(name);
      if (known !== undefined && known.pos >= pos) return known.made;
      return keep(name, pos, make(head, view, wire, pos, told));
    },
    forget(tenant) {
      for (const name of kept.keys()) if (name.startsWith(`${tenant}/`)) drop(name);
    },
  };
}
