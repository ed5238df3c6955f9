import { EventEmitter } from "node:events";
import { RunwireError } from "@runwire/protocol";
import { expect, it } from "vitest";
import type { WebSocket } from "ws";
import type { Connection } from "../connections.js";
import { inOrder, socketSink } from "./socket.js";

let nowMs = 0;

/** A client whose messages wait until its tenant may ask again, and what was obeyed of them. */
function waitingClient(text = "abort it") {
  const ws = Object.assign(new EventEmitter(), {
    OPEN: 1,
    readyState: 1,
    bufferedAmount: 0,
    pause() {},
    resume() {},
    pings: 0,
    ping() {
      ws.pings += 1;
    },
    close() {
      ws.readyState = 2;
    },
  });
  const added: Connection[] = [];
  const rooms = {
    clock: { now: () => 0, monotonic: () => nowMs },
    connections: {
      leaving: false,
      add(connection: Connection) {
        added.push(connection);
        return () => {};
      },
    },
  };
  const socket = Object.assign(new EventEmitter(), { writableNeedDrain: false, writableLength: 0 });
  const upgrade = { socket, tenant: "acme", caller: {}, requestId: "req_a" };
  const { sink, isOver } = socketSink(rooms as never, ws as unknown as WebSocket, upgrade as never);
  let mayAsk = (): void => {};
  const asking = new Promise<void>((resolve) => {
    mayAsk = resolve;
  });
  const obeyed: string[] = [];
  const reported: unknown[] = [];
  void inOrder(
    { quotas: { askingLater: () => asking } as never, report: (...line) => void reported.push(line) },
    ws as unknown as WebSocket,
    upgrade as never,
    isOver,
    Promise.resolve(),
    async (text) => {
      if (text === "stumble") throw new TypeError("not foreseen");
      obeyed.push(text);
    },
  );
  ws.emit("message", text, false);
  return {
    ws,
    socket,
    sink,
    connection: added[0] as Connection,
    reported,
    async obeyed() {
      mayAsk();
      await new Promise((resolve) => setImmediate(resolve));
      return obeyed;
    },
  };
}

it("what a client said last is obeyed, also where it has gone", async () => {
  const { ws, obeyed } = waitingClient();
  ws.readyState = 2;
  expect(await obeyed()).toEqual(["abort it"]);
});

it("what waits when its credential ends, or the server leaves, is not obeyed any more", async () => {
  const ended = waitingClient();
  ended.connection.end(new RunwireError("KAI-AUTH-TOKEN-0003"));
  expect(await ended.obeyed()).toEqual([]);
  const left = waitingClient();
  left.connection.leave();
  expect(await left.obeyed()).toEqual([]);
});

it("a client that sends bytes is obeyed no more, and nothing is read for it while it does not go", async () => {
  const { ws, sink, obeyed } = waitingClient();
  expect(sink.isFull()).toBe(false);
  ws.emit("message", Buffer.from("x"), true);
  ws.emit("message", "start a run", false);
  expect(sink.isFull()).toBe(true);
  expect(await obeyed()).toEqual([]);
});

it("a bug in what obeys a client is told under the id of its request, and ends the connection", async () => {
  const { ws, reported, obeyed } = waitingClient("stumble");
  expect(await obeyed()).toEqual([]);
  const stack = expect.stringContaining("not foreseen") as string;
  expect(reported).toEqual([["error", "bug", { code: "KAI-SERVER-BUG-0001", request_id: "req_a", stack }]]);
  expect(ws.readyState).toBe(2);
});

it("a client that never reads is greeted no more once its socket is full, and counts as greeted", () => {
  const { ws, socket, connection } = waitingClient();
  connection.ping();
  expect(ws.pings).toBe(1);
  Object.assign(socket, { writableNeedDrain: true, writableLength: 1 });
  nowMs = 1;
  connection.ping();
  expect([ws.pings, connection.sentMs()]).toEqual([1, 1]);
  Object.assign(socket, { writableNeedDrain: false, writableLength: 0 });
  connection.ping();
  expect(ws.pings).toBe(2);
});
