// Where a cursor points. A cursor is a number of the dialect and view it was read from; one that is empty, unusable or
// ahead of the log means the start, because skipping silently would lose events.

import type { Dialect, EncoderState, View } from "@runwire/protocol";
import type { Head } from "./log/head.js";
import type { Rooms } from "./rooms.js";
import type { RunKey } from "./store.js";

export interface Resume {
  /** Position after which to read, with the encoder's state there. */
  readonly after: number;
  readonly state: EncoderState;
  /** The cursor. What is said after `after` up to this number, where an event is several messages, has been heard. */
  readonly number: number;
  /** Whether the client has had everything there is. */
  readonly atEnd: boolean;
}

export async function resumeFrom(
  { store, encodings }: Pick<Rooms, "store" | "encodings">,
  head: Head,
  dialect: Dialect,
  view: View,
  given: string | undefined,
): Promise<Resume> {
  const state = dialect.first;
  const start: Resume = { after: 0, state, number: 0, atEnd: false };
  if (!isCursor(given)) return start;
  const number = Number(given);
  if (number === 0) return start;
  const key: RunKey = { tenant: head.run.tenant, run_id: head.run.run_id };
  const { cursor } = dialect;
  const here = head.views[view];
  if (typeof cursor === "object") {
    const mark = await encodings.upTo(key, view, dialect, number);
    if (mark === undefined) return start;
    return { after: mark.pos, state: mark.state, number, atEnd: mark.pos >= here.pos };
  }
  if (number > here[cursor]) return start;
  const after = cursor === "pos" ? number : await store.posOfSeq(key, view, number);
  return { after, state, number, atEnd: number === here[cursor] };
}

/** Whether a cursor can be used at all. */
export function isCursor(given: string | undefined): given is string {
  return given !== undefined && /^[0-9]{1,15}$/.test(given);
}
