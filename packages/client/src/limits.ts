// Every queue, buffer, wait and retry of the client has a limit, and each limit has a name here.

import { limits as wire } from "@runwire/protocol";

export const limits = {
  /** Waits between attempts: the first is up to this long, each further one up to twice the one before. */
  backoffMsFirst: 250,
  backoffMsMax: 10_000,
  /** A server may ask for a longer wait; one that asks for more than this is more likely mistaken. */
  retryMsMax: 5 * 60_000,
  /** A connection this silent is taken for dead: two keep-alives and a half were missed. */
  silenceMsMax: 2.5 * wire.keepaliveMs,
  /** The same where pings cannot be seen, as on a browser's WebSocket: a quiet run looks just like this. */
  unseenPingsMsMax: 5 * 60_000,
  /** A plain request that takes longer counts as lost. */
  answerMsMax: 30_000,
  /** Ids remembered per run to tell a duplicate from a log that was reset. */
  idsKept: 1000,
  /** One SSE block or NDJSON line; a snapshot of a long run is the largest. */
  frameCharsMax: 64 * 1024 * 1024,
  /** Unread WebSocket messages. Over it the socket is closed, and reading goes on from the cursor. */
  socketCharsMax: 16 * 1024 * 1024,
  /** One batch of a producer: well under what a server takes, so that a retry stays cheap. */
  batchEventsMax: 1000,
  batchCharsMax: 1024 * 1024,
  /** Deltas wait this long for others to share their request; control events do not wait. */
  lingerMs: 20,
  /** What a producer holds before `push` makes its caller wait … */
  bufferEventsMax: 10_000,
  bufferCharsMax: 8 * 1024 * 1024,
  /** … and how often that much a caller that does not wait may have unsent before `push` refuses. */
  bufferOverrunMax: 4,
} as const;
