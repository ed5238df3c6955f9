import { EventEmitter } from "node:events";
import { RunwireError } from "@runwire/protocol";
import { expect, it } from "vitest";
import type { WebSocket } from "ws";
import type { Connection } from "../connections.js";
import { inOrder, socketSink } from "./socket.js";

/** A client whose messages wait until its tenant may ask again, and what was obeyed of them. */
function waitingClient() {
  const ws = Object.assign(new EventEmitter(), {
    OPEN: 1,
    readyState: 1,
    bufferedAmount: 0,
    pause() {},
    resume() {},
    close() {
      ws.readyState = 2;
    },
  });
  const added: Connection[] = [];
  const rooms = {
    clock: { now: () => 0, monotonic: () => 0 },
    connections: {
      leaving: false,
      add(connection: Connection) {
        added.push(connection);
        return () => {};
      },
    },
  };
  const upgrade = { socket: new EventEmitter(), tenant: "acme", caller: {} };
  const { sink, isOver } = socketSink(rooms as never, ws as unknown as WebSocket, upgrade as never);
  let mayAsk = (): void => {};
  const asking = new Promise<void>((resolve) => {
    mayAsk = resolve;
  });
  const obeyed: string[] = [];
  void inOrder(
    { quotas: { askingLater: () => asking } as never, report() {} },
    ws as unknown as WebSocket,
    upgrade as never,
    isOver,
    Promise.resolve(),
    async (text) => void obeyed.push(text),
  );
  ws.emit("message", "abort it", false);
  return {
    ws,
    sink,
    connection: added[0] as Connection,
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
