// WebSocket: the same streams in text frames. Frames are made once and shared like all bytes, so they are written
// to the socket directly; the library does the handshake, control frames and the closing.

import { type Dialect, dialects, isObject, koder, RunwireError } from "@runwire/protocol";
import type { WebSocket } from "ws";
import { mayOpen } from "../auth/gate.js";
import { badParam } from "../http/check.js";
import { backpressureOf, checkSnapshot, cursorText, viewOf } from "../http/query.js";
import type { Upgrade } from "../http/route.js";
import { toldOf } from "../report.js";
import type { Rooms } from "../rooms.js";
import type { ManyQuery, RunStreamQuery } from "../routes/streams.js";
import { openStream } from "../stream.js";
import { wire } from "../wire.js";
import { askedRuns } from "./http-mux.js";
import { findMember, type Member, type Mux, type MuxOptions, mux } from "./mux.js";
import { followableHead, openAt } from "./open.js";
import { acceptor, inOrder, socketSink } from "./socket.js";

const koderProtocol = "koder-agent-stream-v1";

export interface Sockets {
  /** One run. Throws before the upgrade where it cannot be read. */
  one(upgrade: Upgrade<RunStreamQuery>): Promise<void>;
  /** Several runs, added and removed by message. */
  many(upgrade: Upgrade<ManyQuery>): Promise<void>;
}

export function webSockets(rooms: Rooms): Sockets {
  const accept = acceptor((name) => dialectNamed(name) !== undefined);

  return {
    async one(upgrade) {
      const { req, query, run: key } = upgrade;
      const dialect = dialectFor(upgrade);
      const view = viewOf(query, req);
      const { snapshot } = query;
      checkSnapshot({ snapshot, dialect }, "WebSocket");
      const backpressure = backpressureOf({ ...query, dialect });
      const run = await followableHead(rooms, key, view);
      const bytes = wire(dialect, "websocket", false);
      const opening = await openAt(rooms, run, bytes, view, { cursor: cursorText(query, req), snapshot });
      const ws = await accept(upgrade);
      const { sink, attach, isOver } = socketSink(rooms, ws, upgrade);
      // It has nothing to say here, but what it says counts.
      void inOrder(rooms, ws, upgrade, isOver, Promise.resolve(), async () => {});
      if (opening.finished) {
        sink.close("finished");
        return;
      }
      if (opening.first.length > 0) sink.send(opening.first, opening.number);
      attach(await openStream(rooms, { ...opening, key, view, wire: bytes, backpressure, sink }));
    },

    async many(upgrade) {
      const { req, query, tenant } = upgrade;
      const dialect = dialectFor(upgrade);
      const options: MuxOptions = {
        tenant,
        view: viewOf(query, req),
        backpressure: backpressureOf({ ...query, dialect }),
        wire: wire(dialect, "websocket", false),
      };
      const asked = [...askedRuns(query.runs, 0)];
      const members = await Promise.all(
        asked.map(([run_id, cursor]) => findMember(rooms, options, run_id, cursor)),
      );
      const ws = await accept(upgrade);
      const { sink, attach, isOver } = socketSink(rooms, ws, upgrade);
      const { close } = sink;
      const many = mux(
        rooms,
        options,
        {
          isFull: sink.isFull,
          send: (bytes) => sink.send(bytes, 0),
          close,
        },
        "wait",
      );
      attach(many);
      await inOrder(rooms, ws, upgrade, isOver, addAll(many, members), (text) =>
        obey(rooms, options, upgrade, many, ws, text),
      );
    },
  };
}

async function addAll(many: Mux, members: readonly Member[]): Promise<void> {
  for (const member of members) await many.add(member);
}

/** `{"type":"subscribe","run_id":…,"after":…}` or `{"type":"unsubscribe","run_id":…}`. */
async function obey(
  rooms: Rooms,
  options: MuxOptions,
  { caller, requestId }: Pick<Upgrade, "caller" | "requestId">,
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
      if (!(await mayOpen(rooms.store, caller, `run:${run_id}`)))
        throw new RunwireError("KAI-AUTH-TICKET-0001");
      const after = message.after ?? undefined;
      if (after !== undefined && typeof after !== "string" && typeof after !== "number")
        throw badParam("`after`", "takes a number");
      const cursor = after === undefined ? undefined : String(after);
      await many.add(await findMember(rooms, options, run_id, cursor));
    } else if (message.type === "unsubscribe") many.remove(run_id);
    else throw badParam("`type`", "takes subscribe or unsubscribe");
  } catch (error) {
    const told = toldOf(rooms.report, error, requestId).toJSON();
    ws.send(JSON.stringify({ type: "error", run_id: typeof run_id === "string" ? run_id : null, ...told }));
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
