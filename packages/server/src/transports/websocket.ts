// WebSocket: the same streams in text frames. Frames are made once and shared like all bytes, so they are written
// to the socket directly; the library does the handshake, control frames and the closing.

import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import {
  type Close,
  type Dialect,
  dialects,
  errorTable,
  isObject,
  koder,
  RunwireError,
} from "@runwire/protocol";
import { type WebSocket, WebSocketServer } from "ws";
import { requestIdHeader } from "../http/account.js";
import { badParam } from "../http/check.js";
import { backpressureOf, cursorText, viewOf } from "../http/query.js";
import type { Upgrade } from "../http/route.js";
import { stackOf } from "../report.js";
import type { Rooms } from "../rooms.js";
import type { ManyQuery, RunStreamQuery } from "../routes/streams.js";
import { openStream, type Sink, type Stream } from "../stream.js";
import { wire } from "../wire.js";
import { parseRuns } from "./http-mux.js";
import { findMember, type Member, type Mux, type MuxOptions, mux } from "./mux.js";
import { followableHead, openAt } from "./open.js";

const koderProtocol = "koder-agent-stream-v1";
const messageBytesMax = 64 * 1024;
/** A client that leaves this much unread is answered no more until it has read. */
const unreadBytesMax = 64 * 1024;
const closeCodes: { readonly [C in Close]: number } = { finished: 1000, leaving: 1012, broken: 1011 };

export interface Sockets {
  /** One run. Throws before the upgrade where it cannot be read. */
  one(upgrade: Upgrade<RunStreamQuery>): Promise<void>;
  /** Several runs, added and removed by message. */
  many(upgrade: Upgrade<ManyQuery>): Promise<void>;
}

export function webSockets(rooms: Rooms): Sockets {
  const server = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: messageBytesMax,
    // Done below: the library answers every ping, also of a client that reads none of the answers.
    autoPong: false,
    handleProtocols: (offered) => [...offered].find((name) => dialectNamed(name) !== undefined) ?? false,
  });

  // Node gives the handshake no response of its own to put a header on, or to refuse it with.
  const requestIds = new WeakMap<IncomingMessage, string>();
  server.on("headers", (headers, req) => {
    headers.push(`${requestIdHeader}: ${requestIds.get(req)}`);
  });
  const refusals = new WeakMap<IncomingMessage, (error: RunwireError) => void>();
  server.on("wsClientError", ({ message }, _socket, req) => {
    refusals.get(req)?.(new RunwireError("KAI-STREAM-FRAME-0002", message));
  });

  const accept = ({ req, socket, head, requestId, accepted }: Upgrade<unknown>): Promise<WebSocket> =>
    new Promise((resolve, reject) => {
      requestIds.set(req, requestId);
      refusals.set(req, reject);
      server.handleUpgrade(req, socket, head, (ws) => {
        accepted();
        ws.on("ping", (data) => {
          if (ws.bufferedAmount < unreadBytesMax) ws.pong(data);
        });
        resolve(ws);
      });
    });

  return {
    async one(upgrade) {
      const { req, query, run: key } = upgrade;
      const dialect = dialectFor(upgrade);
      const view = viewOf(query, req);
      const { snapshot } = query;
      if (snapshot && dialect.name === koder.name)
        throw badParam("`snapshot`", "must be 0 on WebSocket of dialect koder");
      const backpressure = backpressureOf({ ...query, dialect });
      const run = await followableHead(rooms, key, view);
      const { finished, first, after, number, state } = await openAt(rooms, run, dialect, view, {
        cursor: cursorText(query, req),
        snapshot,
      });
      const ws = await accept(upgrade);
      const { sink, attach } = socketSink(rooms, ws, upgrade);
      ws.on("message", (_data, isBinary) => {
        if (isBinary) ws.close(1003, errorTable["KAI-STREAM-FRAME-0001"].title);
      });
      if (finished) {
        sink.close("finished");
        return;
      }
      const bytes = wire(dialect, "websocket", false);
      if (first.length > 0) sink.send(bytes.frame(first), number);
      attach(
        await openStream(rooms.hub, {
          key,
          view,
          after,
          state,
          number,
          wire: bytes,
          backpressure,
          sink,
          report: rooms.report,
          metrics: rooms.metrics,
        }),
      );
    },

    async many(upgrade) {
      const { req, query, tenant } = upgrade;
      const dialect = dialectFor(upgrade);
      const options: MuxOptions = {
        tenant,
        dialect,
        view: viewOf(query, req),
        backpressure: backpressureOf({ ...query, dialect }),
        wire: wire(dialect, "websocket", false),
      };
      const asked = [...parseRuns(query.runs)];
      const members = await Promise.all(
        asked.map(([run_id, cursor]) => findMember(rooms, options, run_id, cursor)),
      );
      const ws = await accept(upgrade);
      const { sink, attach } = socketSink(rooms, ws, upgrade);
      const { close } = sink;
      const many = mux(
        rooms,
        options,
        {
          get full() {
            return sink.full;
          },
          send: (bytes) => sink.send(bytes, 0),
          close,
        },
        "wait",
      );
      attach(many);
      // One message after the other, in their order; a client that sends faster waits.
      let waiting = 0;
      let obeyed = addAll(many, members);
      ws.on("message", (data, isBinary) => {
        if (isBinary) {
          ws.close(1003, errorTable["KAI-STREAM-FRAME-0001"].title);
          return;
        }
        waiting += 1;
        ws.pause();
        obeyed = obeyed
          .then(() => obey(rooms, options, upgrade, many, ws, String(data)))
          .then(() => hasRead(ws, upgrade.socket))
          .then(() => {
            waiting -= 1;
            if (waiting === 0) ws.resume();
          });
      });
      await obeyed;
    },
  };
}

/** Settles when what was written is read as far as it must be, or never will be. */
async function hasRead(ws: WebSocket, socket: Duplex): Promise<void> {
  while (ws.readyState === ws.OPEN && ws.bufferedAmount >= unreadBytesMax) {
    await new Promise<void>((resolve) => {
      const go = (): void => {
        socket.off("drain", go).off("close", go);
        resolve();
      };
      socket.once("drain", go).once("close", go);
    });
  }
}

async function addAll(many: Mux, members: readonly Member[]): Promise<void> {
  for (const member of members) await many.add(member);
}

/** `{"type":"subscribe","run_id":…,"after":…}` or `{"type":"unsubscribe","run_id":…}`. */
async function obey(
  rooms: Rooms,
  options: MuxOptions,
  { caller }: Pick<Upgrade, "caller">,
  many: Mux,
  ws: WebSocket,
  text: string,
): Promise<void> {
  let run_id: unknown;
  try {
    const message = parseMessage(text);
    run_id = message.run_id;
    if (typeof run_id !== "string") throw badParam("`run_id`", "takes a run");
    if (message.type === "subscribe") {
      // A ticket opens what it was made for, and nothing more.
      if (caller.only?.has(`run:${run_id}`) === false) throw new RunwireError("KAI-AUTH-TICKET-0001");
      const after = message.after ?? undefined;
      if (after !== undefined && typeof after !== "string" && typeof after !== "number")
        throw badParam("`after`", "takes a number");
      const cursor = after === undefined ? undefined : String(after);
      await many.add(await findMember(rooms, options, run_id, cursor));
    } else if (message.type === "unsubscribe") many.remove(run_id);
    else throw badParam("`type`", "takes subscribe or unsubscribe");
  } catch (error) {
    const known = error instanceof RunwireError;
    if (!known) rooms.report("error", "bug", { code: "KAI-SERVER-BUG-0001", stack: stackOf(error) });
    const told = known ? error : new RunwireError("KAI-SERVER-BUG-0001");
    ws.send(
      JSON.stringify({ type: "error", run_id: typeof run_id === "string" ? run_id : null, ...told.toJSON() }),
    );
  }
}

function parseMessage(text: string): { [member: string]: unknown } {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // Said below, in one place.
  }
  throw new RunwireError("KAI-STREAM-PARAM-0001", "a message must be a JSON object");
}

function dialectNamed(protocol: string): Dialect | undefined {
  if (protocol === koderProtocol) return koder as Dialect;
  return protocol.startsWith("runwire.") ? dialects.get(protocol.slice("runwire.".length)) : undefined;
}

/** The first subprotocol that is spoken here decides; without one, `dialect=` does. */
function dialectFor({ req, query }: Upgrade<ManyQuery | RunStreamQuery>): Dialect {
  for (const offered of (req.headers["sec-websocket-protocol"] ?? "").split(",")) {
    const dialect = dialectNamed(offered.trim());
    if (dialect !== undefined) return dialect;
  }
  return query.dialect;
}

function socketSink(
  rooms: Rooms,
  ws: WebSocket,
  { socket, caller }: Pick<Upgrade, "socket" | "caller">,
): { sink: Sink; attach(stream: Stream): void } {
  const { clock, connections } = rooms;
  let stream: Stream | undefined;
  let sentMs = clock.monotonic();
  let full = false;
  const isOpen = (): boolean => ws.readyState === ws.OPEN;

  const remove = connections.add({
    get sentMs() {
      return sentMs;
    },
    ping() {
      sentMs = clock.monotonic();
      if (isOpen()) ws.ping();
    },
    caller,
    leave: () => (stream === undefined ? ws.close(closeCodes.leaving) : stream.close("leaving")),
    end(why) {
      ws.close(why.row.close, why.row.title);
      stream?.close("leaving", "credentials");
    },
  });
  socket.on("drain", () => {
    if (!full) return;
    full = false;
    stream?.drained();
  });
  // A broken frame is answered by the library with its close code; the stream then ends like any other.
  ws.on("error", () => {});
  ws.once("close", () => {
    remove();
    stream?.close("broken");
  });

  return {
    sink: {
      get full() {
        return full;
      },
      send(bytes) {
        if (!isOpen()) return;
        sentMs = clock.monotonic();
        full = !socket.write(bytes) && socket.writableLength > 0;
      },
      close(how) {
        if (isOpen()) ws.close(closeCodes[how]);
      },
    },
    attach(opened) {
      stream = opened;
      if (!isOpen()) opened.close("broken");
      else if (connections.leaving) opened.close("leaving");
    },
  };
}
