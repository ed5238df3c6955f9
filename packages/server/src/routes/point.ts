// A point of a run, to begin another one from: the conversation up to there, and the last checkpoint.

import { type Dialect, is, RunwireError, type StoredEvent } from "@runwire/protocol";
import { conversationTo, type FoldedTo } from "../conversations.js";
import type { Head } from "../log/head.js";
import { resumeFrom } from "../resume.js";
import type { Rooms } from "../rooms.js";
import type { RunKey } from "../store.js";

export interface Point extends FoldedTo {
  readonly last: StoredEvent;
  /** The last checkpoint up to there. */
  readonly checkpoint_id: string | null;
}

/** Events 1 and 2 of a run are one commit: what was asked is part of every point. */
export const askedPos = 2;

/** At a number of the dialect's cursor; all of the run where none is given. */
export async function pointAt(
  rooms: Rooms,
  head: Head,
  dialect: Dialect,
  at: number | null | undefined,
): Promise<Point> {
  const { run, views } = head;
  const missing = `${run.run_id} has not got to ${at} (${dialect.name})`;
  let { pos } = views.default;
  if (at != null) {
    const { after, number } = await resumeFrom(rooms, head, dialect, "default", String(at));
    if (number !== at) throw new RunwireError("KAI-RUN-POINT-0001", missing);
    pos = Math.max(after, askedPos);
  }
  return foldTo(rooms, run, pos, (e) => e.pos === pos, missing);
}

/** At the step that has this checkpoint. */
export function pointOf(rooms: Rooms, { run, views }: Head, checkpoint_id: string): Promise<Point> {
  const missing = `no step of ${run.run_id} has the checkpoint ${checkpoint_id}`;
  return foldTo(rooms, run, views.default.pos, (e) => checkpointIn(e) === checkpoint_id, missing);
}

async function foldTo(
  { store }: Rooms,
  key: RunKey,
  pos: number,
  isLast: (e: StoredEvent) => boolean,
  missing: string,
): Promise<Point> {
  let checkpoint_id: string | null = null;
  const { conversation, last } = await conversationTo(store, key, pos, (e) => {
    checkpoint_id = checkpointIn(e) ?? checkpoint_id;
    return isLast(e);
  });
  if (last === undefined) throw new RunwireError("KAI-RUN-POINT-0001", missing);
  return { conversation, last, checkpoint_id };
}

function checkpointIn(e: StoredEvent): string | null {
  return e.child_id === null && is(e, "step.boundary") ? (e.payload.checkpoint_id ?? null) : null;
}
