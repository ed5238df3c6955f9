// What every transport does before bytes flow: find the run, settle the cursor, prepare the first message.

import {
  type Dialect,
  type EncoderState,
  emptyTranscript,
  type Message,
  RunwireError,
  type View,
} from "@runwire/protocol";
import { type Resume, resumeFrom } from "../http/query.js";
import { type Head, isEnded } from "../log/head.js";
import type { Beginning } from "../metrics/streams.js";
import type { Rooms } from "../rooms.js";
import type { RunKey } from "../store.js";

/** The head of a run that may be read; 404 for an unknown one, 410 for one that was erased, or lost this view. */
export async function readableHead({ store }: Rooms, key: RunKey, view: View = "default"): Promise<Head> {
  const head = await store.head(key);
  if (head !== undefined) {
    if (view === "full" && head.fullGone) {
      const detail = `the full view of ${key.run_id} is no longer kept; its default view is`;
      throw new RunwireError("KAI-STREAM-CONN-0002", detail);
    }
    return head;
  }
  if (await store.isErased(key)) throw new RunwireError("KAI-STREAM-CONN-0002", `${key.run_id} was erased`);
  throw new RunwireError("KAI-RUN-MISSING-0001", key.run_id);
}

/** The same for a stream, where a run that is gone is one of the ways to begin. */
export function followableHead(rooms: Rooms, key: RunKey, view: View): Promise<Head> {
  return readableHead(rooms, key, view).catch((error: unknown) => {
    if (error instanceof RunwireError && error.code === "KAI-STREAM-CONN-0002")
      rooms.metrics.streamBegan("gone");
    throw error;
  });
}

export interface Opening extends Resume {
  /** The client has everything, and nothing will follow. */
  readonly finished: boolean;
  readonly state: EncoderState;
  /** What goes out before the events. */
  readonly first: readonly Message[];
}

export async function openAt(
  rooms: Rooms,
  head: Head,
  dialect: Dialect,
  view: View,
  asked: { readonly cursor: string | undefined; readonly snapshot: boolean },
): Promise<Opening> {
  const key: RunKey = { tenant: head.run.tenant, run_id: head.run.run_id };
  if (asked.snapshot) {
    rooms.metrics.streamBegan("snapshot");
    // Of a run that has ended, the last event is left to the stream: every reader hears the end itself.
    const last = isEnded(head) ? 1 : 0;
    const pos = head.views[view].pos - last;
    const seq = head.views[view].seq - last;
    const transcript = await rooms.transcripts.at(key, view, pos);
    const number = dialect.cursor === "pos" ? pos : seq;
    const data = JSON.stringify({ type: "snapshot", pos, seq, transcript });
    const state = await stateAt(rooms, key, view, dialect, pos);
    const first = [{ id: String(number), event: "snapshot", data }];
    return { after: pos, number, atEnd: true, finished: false, state, first };
  }
  const resume = await resumeFrom(rooms.store, head, dialect, view, asked.cursor);
  const state = await stateAt(rooms, key, view, dialect, resume.after);
  const first = dialect.open(state, resume.after, () => emptyTranscript(key.run_id));
  const finished = resume.atEnd && isEnded(head);
  rooms.metrics.streamBegan(finished ? "finished" : beginning(asked.cursor, resume));
  return { ...resume, finished, state, first };
}

function beginning(cursor: string | undefined, { after }: Resume): Beginning {
  if (after > 0) return "resumed";
  return cursor === undefined || /^0*$/.test(cursor) ? "start" : "reset";
}

/** An encoder's state is a function of the log: fold it up to where the client begins. */
async function stateAt(
  { store }: Rooms,
  key: RunKey,
  view: View,
  dialect: Dialect,
  pos: number,
): Promise<EncoderState> {
  let state = dialect.first;
  // A dialect that keeps nothing needs no fold.
  if (state === null) return state;
  for (let at = 0; at < pos; ) {
    const events = await store.read(key, view, at, 256 * 1024);
    if (events.length === 0) break;
    for (const e of events) {
      if (e.pos > pos) return state;
      state = dialect.step(state, e)[0];
      at = e.pos;
    }
  }
  return state;
}
