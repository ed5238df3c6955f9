import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { connect, createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { Duplex } from "node:stream";
import { RunwireError } from "@runwire/protocol";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Connection } from "../connections.js";
import { type HttpStream, httpStream } from "./http-stream.js";

afterEach(() => {
  vi.useRealTimers();
});

const roomBytes = 100;
let nowMs = 0;

function streamOn(
  socket: Duplex,
  given: { readonly hasEnd?: boolean } = {},
): HttpStream & { readonly connection: Connection } {
  const res = Object.assign(new EventEmitter(), {
    req: { httpVersion: "1.1" },
    socket,
    flushHeaders() {},
    destroy: () => socket.destroy(),
    end: () => socket.end("the end"),
  });
  const added: Connection[] = [];
  const stream = httpStream(
    { res: res as unknown as ServerResponse, caller: {} as never, begin() {} },
    "sse",
    {
      clock: { now: () => 0, monotonic: () => nowMs },
      connections: {
        leaving: false,
        add(connection: Connection) {
          added.push(connection);
          return () => {};
        },
      } as never,
    },
    given,
  );
  return { ...stream, connection: added[0] as Connection };
}

describe("a reader that takes no more", () => {
  it("is gone on with when it does, also where something short was said in between", async () => {
    const written: (() => void)[] = [];
    const socket = new Duplex({
      highWaterMark: roomBytes,
      read() {},
      write: (_chunk, _encoding, done) => void written.push(done),
      writev: (_chunks, done) => void written.push(done),
    });
    const { sink, attach } = streamOn(socket);
    const drained = new Promise<void>((resolve) => attach({ drained: resolve, close() {} }));
    const sayShort = (): void => sink.send(Buffer.from("short"), 1);

    sink.send(Buffer.alloc(2 * roomBytes), 1);
    expect(sink.isFull()).toBe(true);
    sayShort();
    // The large one is out, the short one is not: there is room for another one, but nothing has drained.
    written.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
    sayShort();
    while (written.length > 0) {
      written.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await drained;
    expect(sink.isFull()).toBe(false);
  });
});

describe("a reader that never reads", () => {
  it("is greeted no more once its socket is full, and then only when it has read", async () => {
    const written: (() => void)[] = [];
    const socket = new Duplex({
      highWaterMark: roomBytes,
      read() {},
      write: (_chunk, _encoding, done) => void written.push(done),
    });
    const { sink, attach, connection } = streamOn(socket);
    const drained = new Promise<void>((resolve) => attach({ drained: resolve, close() {} }));
    sink.send(Buffer.alloc(2 * roomBytes), 1);
    const waiting = socket.writableLength;
    for (nowMs = 1; nowMs <= 100; nowMs++) {
      connection.ping();
      // It counts as greeted, and has its turn when others have.
      expect([socket.writableLength, connection.sentMs()]).toEqual([waiting, nowMs]);
    }
    written.shift()?.();
    await drained;
    connection.ping();
    expect(socket.writableLength).toBeGreaterThan(0);
  });
});

describe("an answer that has an end", () => {
  const pieceBytes = 64 * 1024;
  const large = Buffer.alloc(5 * pieceBytes, "large ");

  /** One whose client takes a piece when it is told to. */
  function slowSocket(): { readonly socket: Duplex; readonly said: () => string; take(): Promise<void> } {
    const written: (() => void)[] = [];
    let said = "";
    const socket = new Duplex({
      highWaterMark: roomBytes,
      read() {},
      write(chunk, _encoding, done) {
        said += chunk;
        written.push(done);
      },
    });
    const take = (): Promise<void> => {
      written.shift()?.();
      return new Promise((resolve) => setImmediate(resolve));
    };
    return { socket, said: () => said, take };
  }

  it("goes on while some of a large event is taken, and is broken off where nothing is", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { socket, said, take } = slowSocket();
    const { sink } = streamOn(socket, { hasEnd: true });
    sink.send(large, 1);
    for (let pieces = 1; pieces < 5; pieces++) {
      expect([said().length, sink.isFull()]).toEqual([pieces * pieceBytes, true]);
      vi.advanceTimersByTime(59_999);
      await take();
    }
    expect([said(), socket.destroyed]).toEqual([large.toString(), false]);
    vi.advanceTimersByTime(60_000);
    expect(socket.destroyed).toBe(true);
  });

  it("has its last word after all that it had still to say", async () => {
    const { socket, said, take } = slowSocket();
    const { sink } = streamOn(socket, { hasEnd: true });
    sink.send(large, 1);
    sink.close("finished");
    for (let pieces = 0; pieces < 5; pieces++) await take();
    expect(said()).toBe(`${large}the end`);
  });
});

describe("a credential that ends while its stream is opening", () => {
  it("lets no event follow, and ends the stream once it is open [RW-AUTH-6]", () => {
    let said = "";
    const socket = new Duplex({
      read() {},
      write(chunk, _encoding, done) {
        said += chunk;
        done();
      },
    });
    const { sink, attach, connection } = streamOn(socket);
    const why = new RunwireError("KAI-AUTH-TOKEN-0003");
    connection.end(why);
    connection.end(why);
    sink.send(Buffer.from("an event"), 1);
    const closes: unknown[][] = [];
    attach({ drained() {}, close: (...how) => closes.push(how) });
    expect(said.match(/event: closing/g)).toHaveLength(1);
    expect(said).not.toContain("an event");
    expect(closes).toEqual([["leaving", "credentials"]]);
  });
});

describe("a stream over HTTP/2", () => {
  it("that breaks is not taken for one that a leaving server ends [RW-CLOSE-3]", async () => {
    const server = createServer((_req, res) => {
      const { sink } = httpStream(
        {
          res: res as unknown as ServerResponse,
          caller: {} as never,
          begin: (status) => res.writeHead(status),
        },
        "sse",
        {
          clock: { now: () => 0, monotonic: () => 0 },
          connections: { leaving: false, add: () => () => {} } as never,
        },
      );
      sink.send(Buffer.from("data: 1\n\n"), 1);
      setImmediate(() => sink.close(res.req.url === "/broken" ? "broken" : "leaving"));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const endOf = (path: string): Promise<string> =>
      new Promise((resolve) => {
        const stream = client.request({ ":path": path }).resume();
        stream.once("error", () => resolve("unclean"));
        stream.once("end", () => resolve("clean"));
      });
    expect([await endOf("/leaving"), await endOf("/broken")]).toEqual(["clean", "unclean"]);
    client.close();
    await new Promise((resolve) => server.close(resolve));
  });
});
