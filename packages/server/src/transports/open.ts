// What every transport does before bytes flow: find the run, settle the cursor, prepare the first message.

import type { View } from "@runwire/protocol";
import { type Head, isEnded } from "../log/head.js";
import { isLogGone, readableHead } from "../reading.js";
import { isCursor, type Resume, resumeFrom } from "../resume.js";
import type { Rooms } from "../rooms.js";
import type { RunKey } from "../store.js";
import type { Wire } from "../wire.js";

/** The head of a run that may be read, for a stream, where a run that is gone is one of the ways to begin. */
export function followableHead(rooms: Rooms, key: RunKey, view: View): Promise<Head> {
  return readableHead(rooms, key, view).catch((error: unknown) => {
    if (isLogGone(error)) rooms.metrics.streamBegan("gone");
    throw error;
  });
}

export interface Opening extends Resume {
  /** The client has everything, and nothing will follow. */
  readonly finished: boolean;
  /** What goes out before the events. Others may be sent the same bytes. */
  readonly first: Buffer;
}

export async function openAt(
  rooms: Rooms,
  head: Head,
  wire: Wire,
  view: View,
  asked: {
    readonly cursor: string | undefined;
    readonly snapshot: boolean;
    /** Whether the client asks by itself for what it has asked before, as `EventSource` does after every end. */
    readonly isAgain?: boolean;
  },
): Promise<Opening> {
  const { dialect } = wire;
  const hasAll =
    asked.isAgain === true &&
    isEnded(head) &&
    (await resumeFrom(rooms, head, dialect, view, asked.cursor)).atEnd;
  if (asked.snapshot && !hasAll) {
    rooms.metrics.streamBegan("snapshot");
    const heard = isCursor(asked.cursor) ? Number(asked.cursor) : undefined;
    const { pos, number, state, bytes } = await rooms.snapshots.of(head, view, wire, heard);
    return { after: pos, number, atEnd: true, finished: false, state, first: bytes };
  }
  const resume = await resumeFrom(rooms, head, dialect, view, asked.cursor);
  const how = beginning(asked.cursor, resume);
  const { run_id, session_id } = head.run;
  const opening = dialect.open(resume.state, {
    how,
    run_id,
    now: new Date(rooms.clock.now()).toISOString(),
    ...(session_id === null ? {} : { session_id }),
  });
  const finished = resume.atEnd && isEnded(head);
  rooms.metrics.streamBegan(finished ? "finished" : how);
  return { ...resume, finished, first: wire.frame(opening) };
}

function beginning(cursor: string | undefined, { number }: Resume): "start" | "resumed" | "reset" {
  if (number > 0) return "resumed";
  return cursor === undefined || /^0*$/.test(cursor) ? "start" : "reset";
}
