// What every transport does before bytes flow: find the run, settle the cursor, prepare the first message.

import type { Dialect, Message, View } from "@runwire/protocol";
import { type Head, isEnded } from "../log/head.js";
import { isLogGone, readableHead } from "../reading.js";
import { isCursor, type Resume, resumeFrom } from "../resume.js";
import type { Rooms } from "../rooms.js";
import type { RunKey } from "../store.js";

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
  /** What goes out before the events. */
  readonly first: readonly Message[];
}

export async function openAt(
  rooms: Rooms,
  head: Head,
  dialect: Dialect,
  view: View,
  asked: {
    readonly cursor: string | undefined;
    readonly snapshot: boolean;
    /** Whether the client asks by itself for what it has asked before, as `EventSource` does after every end. */
    readonly isAgain?: boolean;
  },
): Promise<Opening> {
  const { tenant, run_id, session_id } = head.run;
  const key: RunKey = { tenant, run_id };
  const now = new Date(rooms.clock.now()).toISOString();
  const hasAll =
    asked.isAgain === true &&
    isEnded(head) &&
    (await resumeFrom(rooms, head, dialect, view, asked.cursor)).atEnd;
  if (asked.snapshot && !hasAll) {
    rooms.metrics.streamBegan("snapshot");
    // Of a run that has ended, the last event is left to the stream: every reader hears the end itself.
    const pos = head.views[view].pos - (isEnded(head) ? 1 : 0);
    const transcript = await rooms.transcripts.at(key, view, pos);
    const { cursor } = dialect;
    const isOwn = typeof cursor === "object";
    const state = isOwn ? await rooms.encodings.at(key, view, dialect, pos) : dialect.first;
    const number = isOwn ? cursor.last(state) : transcript[cursor];
    const heard = isCursor(asked.cursor) ? { heard: Number(asked.cursor) } : {};
    const first = dialect.open(state, { how: "snapshot", transcript, now, ...heard });
    return { after: pos, number, atEnd: true, finished: false, state, first };
  }
  const resume = await resumeFrom(rooms, head, dialect, view, asked.cursor);
  const how = beginning(asked.cursor, resume);
  const first = dialect.open(resume.state, {
    how,
    run_id,
    now,
    ...(session_id === null ? {} : { session_id }),
  });
  const finished = resume.atEnd && isEnded(head);
  rooms.metrics.streamBegan(finished ? "finished" : how);
  return { ...resume, finished, first };
}

function beginning(cursor: string | undefined, { number }: Resume): "start" | "resumed" | "reset" {
  if (number > 0) return "resumed";
  return cursor === undefined || /^0*$/.test(cursor) ? "start" : "reset";
}
