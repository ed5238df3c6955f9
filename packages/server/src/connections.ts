// Every open stream, for what concerns them all: signs of life while nothing is said, the end of the credential they
// were opened with, and leaving together.

import { limits, RunwireError } from "@runwire/protocol";
import type { Caller } from "./auth/caller.js";
import type { Clock } from "./clock.js";

export interface Connection {
  /** When bytes were last sent, on the monotonic clock. */
  sentMs(): number;
  readonly caller: Caller;
  ping(): void;
  /** Tells the client that this server leaves, and ends. */
  leave(): void;
  /** Tells the client why, and ends. */
  end(why: RunwireError): void;
}

export interface Connections {
  readonly count: number;
  readonly leaving: boolean;
  add(connection: Connection): () => void;
  /** Ends what a console session opened, once it is signed out. */
  signedOut(session: string): void;
  /** Ends all streams, and lets none begin. */
  leave(): void;
  close(): void;
}

const lookMs = 1000;
/** Whoever was let in before its session was signed out may be here only after; nobody takes that long. */
const signedOutKeptMs = 60_000;

export function connections(clock: Clock, isOver: (caller: Caller) => boolean): Connections {
  const open = new Set<Connection>();
  /** When each was. */
  const signedOut = new Map<string, number>();
  let leaving = false;
  const timer = setInterval(() => {
    const nowMs = clock.monotonic();
    const quietSince = nowMs - limits.keepaliveMs;
    for (const [session, atMs] of signedOut) if (atMs + signedOutKeptMs <= nowMs) signedOut.delete(session);
    for (const connection of [...open]) {
      const { caller } = connection;
      if (isOver(caller) || signedOut.has(caller.session ?? ""))
        connection.end(new RunwireError("KAI-AUTH-TOKEN-0003"));
      else if (connection.sentMs() <= quietSince) connection.ping();
    }
  }, lookMs);
  timer.unref();
  return {
    get count() {
      return open.size;
    },
    get leaving() {
      return leaving;
    },
    add(connection) {
      open.add(connection);
      return () => open.delete(connection);
    },
    signedOut(session) {
      signedOut.set(session, clock.monotonic());
      for (const connection of [...open])
        if (connection.caller.session === session) connection.end(new RunwireError("KAI-AUTH-TOKEN-0003"));
    },
    leave() {
      leaving = true;
      for (const connection of [...open]) connection.leave();
    },
    close: () => clearInterval(timer),
  };
}
