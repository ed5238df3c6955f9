// Several runs on one connection. Each run keeps its own stream and cursor; the transport hears the cursors of
// all of them after each write, so that it can tell the client where it stands.

import { limits, RunwireError, type View } from "@runwire/protocol";
import type { Rooms } from "../rooms.js";
import { openStream, type Sink, type Stream } from "../stream.js";
import type { Wire } from "../wire.js";
import { followableHead, type Opening, openAt } from "./open.js";

export interface MuxOptions {
  readonly tenant: string;
  readonly view: View;
  readonly backpressure: "drop" | "lossless";
  readonly wire: Wire;
}

export interface Member extends Opening {
  readonly run_id: string;
}

export interface MuxSink extends Omit<Sink, "send"> {
  send(bytes: Buffer, cursors: ReadonlyMap<string, number>): void;
}

export interface Mux extends Stream {
  /** Begins to send a run; throws before anything is sent where it cannot be read. */
  add(member: Member): Promise<void>;
  remove(run_id: string): void;
}

const nothing = Buffer.alloc(0);

/** Looks a run up before the connection says yes. */
export async function findMember(
  rooms: Rooms,
  { tenant, view, wire }: MuxOptions,
  run_id: string,
  cursor: string | undefined,
): Promise<Member> {
  const head = await followableHead(rooms, { tenant, run_id }, view);
  return { run_id, ...(await openAt(rooms, head, wire, view, { cursor, snapshot: false })) };
}

/** `whenEmpty` says whether the connection ends with its last run, or waits for more. */
export function mux(rooms: Rooms, options: MuxOptions, sink: MuxSink, whenEmpty: "end" | "wait"): Mux {
  const { tenant, view, backpressure, wire } = options;
  const members = new Map<string, Stream | undefined>();
  const cursors = new Map<string, number>();
  let closed = false;

  /** What a run begins with goes out with its first events: by then the cursors of all runs are known. */
  function memberSink(run_id: string, first: Buffer): Sink {
    let opening = first;
    return {
      isFull: sink.isFull,
      send(bytes, cursor) {
        cursors.set(run_id, cursor);
        takesTurn(members, run_id);
        const whole = opening.length === 0 ? bytes : Buffer.concat([opening, bytes]);
        opening = nothing;
        sink.send(whole, cursors);
      },
      close(how) {
        members.delete(run_id);
        ended(run_id);
        if (closed) return;
        // One that is erased or cannot be read ends the connection: how else would its reader know?
        if (how !== "finished" || (members.size === 0 && whenEmpty === "end")) close(how);
      },
    };
  }

  /** A connection that ends with its runs tells the cursors of all; one that waits for more would never forget any. */
  function ended(run_id: string): void {
    if (whenEmpty === "wait") cursors.delete(run_id);
  }

  function close(...how: Parameters<Stream["close"]>): void {
    if (closed) return;
    closed = true;
    for (const member of members.values()) member?.close(...how);
    sink.close(how[0]);
  }

  return {
    async add(joining) {
      const { run_id, number, finished, first } = joining;
      if (members.has(run_id))
        throw new RunwireError("KAI-STREAM-PARAM-0001", `${run_id} is already on this connection`);
      if (members.size >= limits.runsPerStreamMax) {
        throw new RunwireError(
          "KAI-STREAM-PARAM-0001",
          `a connection carries ${limits.runsPerStreamMax} runs`,
        );
      }
      cursors.set(run_id, number);
      if (finished) {
        ended(run_id);
        return;
      }
      members.set(run_id, undefined);
      const key = { tenant, run_id };
      const own = memberSink(run_id, first);
      const member = await openStream(rooms, { ...joining, key, view, backpressure, wire, sink: own });
      // It may have come to its end, or the connection to its own, while it was opening.
      if (closed) member.close("broken");
      else if (members.has(run_id)) members.set(run_id, member);
      else member.close("finished");
    },
    remove(run_id) {
      const member = members.get(run_id);
      members.delete(run_id);
      cursors.delete(run_id);
      member?.close("finished");
    },
    drained() {
      for (const member of [...members.values()]) member?.drained();
    },
    close,
  };
}

/** Whoever has sent comes last when there is room again, so that no run keeps the others from a slow reader. */
export function takesTurn<M>(members: Map<string, M>, id: string): void {
  const member = members.get(id) as M;
  if (members.delete(id)) members.set(id, member);
}
