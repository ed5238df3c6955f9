// Loom's own WebSocket profile: runs are started, cancelled and answered by messages, and told as they go. Of each run
// come its events in their order, and then exactly one `run_end` or `error`. Who leaves leaves the runs to themselves.

import { type Facts, isId, isObject, limits, loom, type Message, RunwireError } from "@runwire/protocol";
import type { WebSocket } from "ws";
import type { Scope } from "../auth/caller.js";
import { checkBody } from "../http/check.js";
import type { Upgrade } from "../http/route.js";
import { type Head, wasErased } from "../log/head.js";
import { abort } from "../log/lifecycle.js";
import { toldOf } from "../report.js";
import type { Rooms } from "../rooms.js";
import type { RunKey } from "../store.js";
import { openStream, type Sink, type Stream } from "../stream.js";
import { takesTurn } from "../transports/mux.js";
import { acceptor, inOrder, socketSink } from "../transports/socket.js";
import { type Wire, websocketText } from "../wire.js";
import { answerApproval } from "./answers.js";
import { beginAsked, newRun } from "./runs.js";

/** A run of this connection, by the id that its messages carry. */
interface Told {
  readonly key: RunKey;
  stream: Stream | undefined;
}

export function loomSocket(rooms: Rooms): (upgrade: Upgrade) => Promise<void> {
  const accept = acceptor((protocol) => protocol === "loom");
  return async (upgrade) => {
    const ws = await accept(upgrade);
    const { sink, attach, isOver } = socketSink(rooms, ws, upgrade);
    const runs = new Map<string, Told>();
    attach({
      drained: () => {
        for (const { stream } of [...runs.values()]) stream?.drained();
      },
      close: (...how) => {
        const open = [...runs.values()];
        // What ends with the connection has no end of its own to tell.
        runs.clear();
        for (const { stream } of open) stream?.close(...how);
        sink.close(how[0]);
      },
    });
    await inOrder(rooms, ws, upgrade, isOver, Promise.resolve(), (text) =>
      obey(rooms, upgrade, ws, sink, runs, text),
    );
  };
}

async function obey(
  rooms: Rooms,
  upgrade: Upgrade,
  ws: WebSocket,
  sink: Sink,
  runs: Map<string, Told>,
  text: string,
): Promise<void> {
  let message: Facts;
  try {
    message = parsed(text);
  } catch {
    tell(ws, { type: "error", id: null, error: "a message must be a JSON object" });
    return;
  }
  const { type, id } = message;
  const asked = typeof id === "string" ? id : null;
  try {
    switch (type) {
      case "ping":
        tell(ws, { type: "pong", ...(asked === null ? {} : { id: asked }) });
        return;
      case "run":
        await run(rooms, upgrade, ws, sink, runs, message);
        return;
      case "cancel_run":
        await cancel(rooms, upgrade, ws, runs, message);
        return;
      case "tool_approval_response":
        await answer(rooms, upgrade, runs, message);
        return;
      default:
        throw new RunwireError(
          "KAI-STREAM-PARAM-0001",
          "`type` takes run, cancel_run, tool_approval_response or ping",
        );
    }
  } catch (error) {
    const { message: why, code } = toldOf(rooms.report, error, upgrade.requestId);
    tell(ws, { type: "error", id: asked, error: why, code });
  }
}

/** What Loom calls a message, a thread and an agent is a prompt, a session and an agent here. */
async function run(
  rooms: Rooms,
  { caller, tenant }: Upgrade,
  ws: WebSocket,
  sink: Sink,
  runs: Map<string, Told>,
  { message: prompt, id, agent, thread_id, model, approvals, got_adaptive }: Facts,
): Promise<void> {
  need(caller.scopes, "write");
  // What it says is told, and with it what its session said before.
  need(caller.scopes, "read");
  if (typeof prompt !== "string" || prompt === "")
    throw new RunwireError("KAI-STREAM-PARAM-0001", "`message` takes what the agent is to do");
  if (id != null && (!isId(id) || runs.has(id)))
    throw new RunwireError("KAI-STREAM-PARAM-0001", "`id` takes an id that no other run here has");
  if (runs.size >= limits.runsPerStreamMax)
    throw new RunwireError("KAI-STREAM-PARAM-0001", `a connection carries ${limits.runsPerStreamMax} runs`);
  const asked = checkBody(newRun, {
    ...{ prompt, agent, model, approvals, got_adaptive },
    session_id: thread_id,
  });
  const { body } = await beginAsked(rooms, tenant, asked, undefined);
  const key: RunKey = { tenant, run_id: body.run_id };
  const name = isId(id) ? id : body.run_id;
  const told: Told = { key, stream: undefined };
  runs.set(name, told);
  told.stream = await openStream(rooms, {
    key,
    view: "default",
    after: 0,
    state: loom.first,
    wire: loomWire(name),
    backpressure: "lossless",
    sink: {
      isFull: sink.isFull,
      send(bytes, cursor) {
        takesTurn(runs, name);
        sink.send(bytes, cursor);
      },
      close(how) {
        const isOpen = runs.delete(name);
        if (how === "broken") sink.close(how);
        if (how === "leaving" && isOpen) {
          const { message, code } = wasErased(body.run_id);
          tell(ws, { type: "error", id: name, error: message, code });
        }
      },
    },
  });
  // The client may have left while the run began.
  if (ws.readyState !== ws.OPEN) told.stream.close("broken");
}

async function cancel(
  rooms: Rooms,
  { caller }: Upgrade,
  ws: WebSocket,
  runs: Map<string, Told>,
  { id, run_id = id }: Facts,
): Promise<void> {
  need(caller.scopes, "control");
  const { key } = followedAs(runs, run_id);
  await rooms.ingest.change(key, (commit) => abort(commit, key.run_id, "cancelled"));
  tell(ws, { type: "cancel_run_ack", id: run_id });
}

/** A call belongs to one run of this connection; which, its open requests say. */
async function answer(
  rooms: Rooms,
  { caller }: Upgrade,
  runs: Map<string, Told>,
  { call_id, approved, reason, decision = "once" }: Facts,
): Promise<void> {
  need(caller.scopes, "approve");
  if (typeof approved !== "boolean")
    throw new RunwireError("KAI-STREAM-PARAM-0001", "`approved` takes true or false");
  for (const { key } of runs.values()) {
    for await (const head of liveIn(rooms, key)) {
      const at: RunKey = { ...key, run_id: head.run.run_id };
      const [found] = Object.entries(head.requests).filter(
        ([, { kind, status, asked }]) =>
          kind === "approval" && status === "pending" && asked?.shown.call_id === call_id,
      );
      if (found === undefined) continue;
      const given = approved ? (decision === "session" || decision === "always" ? decision : "once") : "deny";
      const why = typeof reason === "string" ? reason : null;
      await answerApproval(rooms, { run: at, id: found[0] }, { decision: given, reason: why });
      return;
    }
  }
  throw new RunwireError("KAI-RUN-REQUEST-0001", String(call_id).slice(0, 80));
}

/** A run and those below it that live: what has ended asks for nothing. */
async function* liveIn(rooms: Rooms, key: RunKey): AsyncGenerator<Head> {
  const head = await rooms.store.head(key);
  if (head === undefined) return;
  yield head;
  for (const run_id of head.children) yield* liveIn(rooms, { ...key, run_id });
}

function followedAs(runs: ReadonlyMap<string, Told>, id: unknown): Told {
  const told = typeof id === "string" ? runs.get(id) : undefined;
  if (told === undefined)
    throw new RunwireError("KAI-RUN-MISSING-0001", "no run of that id is on this connection");
  return told;
}

function need(held: ReadonlySet<Scope>, scope: Scope): void {
  if (!held.has(scope)) throw new RunwireError("KAI-AUTH-SCOPE-0001", `this needs \`${scope}\``);
}

/** Each message of a run in an envelope with its id; the last one is its end. */
function loomWire(id: string): Wire {
  const opening = `{"type":"run_stream_event","id":${JSON.stringify(id)},"event":`;
  return {
    name: `loom-socket/${id}`,
    dialect: loom as Wire["dialect"],
    framing: "websocket",
    frame: (messages) =>
      Buffer.concat(messages.map((message) => websocketText(framed(message, id, opening)))),
  };
}

function framed({ data }: Message, id: string, opening: string): string {
  const isEnd = data.includes('"reply":') || data.includes('"type":"run_error"');
  const said = isEnd ? (JSON.parse(data) as Facts) : {};
  if (said.type === "run_error") return JSON.stringify({ ...said, type: "error", id });
  if (said.type === undefined && typeof said.reply === "string")
    return JSON.stringify({ type: "run_end", id, ...said });
  return `${opening}${data}}`;
}

function tell(ws: WebSocket, message: Facts): void {
  ws.send(JSON.stringify(message));
}

function parsed(text: string): Facts {
  const value: unknown = JSON.parse(text);
  if (!isObject(value)) throw new Error("no object");
  return value;
}
