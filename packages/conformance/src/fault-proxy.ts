// A TCP proxy that breaks connections on purpose. It knows nothing of HTTP: it counts the bytes of the
// response and cuts, delays, slows, splits, repeats or stalls them where a plan says so.
//
//   client ──────── request, maybe later ─────▶ server
//   client ◀── [pass N bytes] [fault] [rest] ── server

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { Transform } from "node:stream";
import { setTimeout as elapse, setImmediate as nextTurn } from "node:timers/promises";

const resetHeadStartMs = 5;
/** A slow connection is written to so often. */
const slowStepMs = 50;

/** What happens to one connection's response. Faults combine; a cut comes last. */
export interface FaultPlan {
  /** Ends the connection after exactly so many bytes: `fin` is a clean end, `rst` a reset. */
  readonly cut?: { readonly afterBytes: number; readonly how: "fin" | "rst" };
  /** Lets so many bytes through and then nothing, with the connection open, until `release`. */
  readonly stall?: { readonly afterBytes: number };
  /** Sends the segment that holds this byte (the first is 0) twice, as a broken proxy would. */
  readonly repeat?: { readonly atByte: number };
  /** No write is longer than this. */
  readonly splitBytes?: number;
  /** Waits this long before each segment, each way. */
  readonly delayMs?: number;
  /** Sends no faster than this. */
  readonly bytesPerSecond?: number;
}

export interface FaultCounters {
  /** Connections taken so far. */
  connections: number;
  requestBytes: number;
  /** Bytes sent to clients; repeated ones count twice. */
  responseBytes: number;
  cuts: number;
  stalls: number;
  repeats: number;
}

export interface FaultProxy {
  readonly host: string;
  readonly port: number;
  /** `http://HOST:PORT` */
  readonly url: string;
  readonly counters: Readonly<FaultCounters>;
  /** Settles once the counter has reached the number: how a test waits for a fault without sleeping. */
  reached(counter: keyof FaultCounters, count: number): Promise<void>;
  /** Lets every stalled connection go on, now and later. */
  release(): void;
  /** Cuts every connection that is open. */
  cutAll(how: "fin" | "rst"): void;
  /** Ends everything; no handle is left. */
  close(): Promise<void>;
}

/** `planOf` gives the plan of the n-th connection, counted from 0. */
export async function faultProxy(
  target: { readonly host: string; readonly port: number },
  planOf: (connection: number) => FaultPlan = () => ({}),
): Promise<FaultProxy> {
  const host = "127.0.0.1";
  const counters: FaultCounters = {
    connections: 0,
    requestBytes: 0,
    responseBytes: 0,
    cuts: 0,
    stalls: 0,
    repeats: 0,
  };
  const sockets = new Set<Socket>();
  const clients = new Set<Socket>();
  const waiting = new Set<{ counter: keyof FaultCounters; count: number; settle(): void }>();
  const released = deferred();
  const closing = new AbortController();

  function add(counter: keyof FaultCounters, count: number): void {
    counters[counter] += count;
    for (const waiter of waiting) {
      if (counters[waiter.counter] < waiter.count) continue;
      waiting.delete(waiter);
      waiter.settle();
    }
  }

  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const plan = planOf(counters.connections);
    add("connections", 1);
    const upstream = connect({ ...target, allowHalfOpen: true, noDelay: true });
    for (const socket of [client, upstream]) hold(socket);
    clients.add(client);
    client.on("data", (bytes) => add("requestBytes", bytes.length));
    const request = plan.delayMs === undefined ? client : client.pipe(delayed(plan.delayMs));
    request.pipe(upstream);
    client.on("close", () => {
      clients.delete(client);
      upstream.destroy();
    });
    respond(upstream, client, plan).catch((failure: NodeJS.ErrnoException) => {
      // A side that went away ends the other side the way it ended itself.
      if (failure.code === "ECONNRESET") client.resetAndDestroy();
      else client.destroy();
    });
  });

  function hold(socket: Socket): void {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    // Being cut off is this proxy's business; `respond` sees it where it matters.
    socket.on("error", () => {});
  }

  async function respond(upstream: Socket, client: Socket, plan: FaultPlan): Promise<void> {
    let sent = 0;
    let stalled = false;
    const { cut, stall, repeat } = plan;

    async function send(bytes: Buffer): Promise<void> {
      const { bytesPerSecond = Infinity } = plan;
      const slowBytes = Math.max(1, Math.floor((bytesPerSecond * slowStepMs) / 1000));
      const pieceBytes = Math.min(plan.splitBytes ?? Infinity, slowBytes, Math.max(bytes.length, 1));
      for (let from = 0; from < bytes.length; from += pieceBytes) {
        const piece = bytes.subarray(from, from + pieceBytes);
        if (bytesPerSecond !== Infinity) await elapsed((piece.length / bytesPerSecond) * 1000);
        await write(client, piece);
        add("responseBytes", piece.length);
      }
      sent += bytes.length;
    }

    /** Sends up to the next fault, lets it happen, and goes on; false when the connection was cut. */
    async function pass(segment: Buffer): Promise<boolean> {
      let rest = segment;
      if (stall !== undefined && !stalled && sent + rest.length > stall.afterBytes) {
        const before = Math.max(0, Math.min(stall.afterBytes, cut?.afterBytes ?? Infinity) - sent);
        await send(rest.subarray(0, before));
        rest = rest.subarray(before);
        if (cut === undefined || sent < cut.afterBytes) {
          stalled = true;
          add("stalls", 1);
          await released.promise;
        }
      }
      if (cut === undefined || sent + rest.length < cut.afterBytes) {
        await send(rest);
        return true;
      }
      await send(rest.subarray(0, cut.afterBytes - sent));
      if (cut.how === "rst") await settle();
      end(client, cut.how);
      upstream.destroy();
      return false;
    }

    if (cut?.afterBytes === 0) {
      end(client, cut.how);
      upstream.destroy();
      return;
    }
    for await (const segment of upstream as AsyncIterable<Buffer>) {
      if (plan.delayMs !== undefined) await elapsed(plan.delayMs);
      const twice = repeat !== undefined && sent <= repeat.atByte && repeat.atByte < sent + segment.length;
      if (!(await pass(segment))) return;
      if (!twice) continue;
      add("repeats", 1);
      if (!(await pass(segment))) return;
    }
    client.end();
  }

  // libuv takes a reset that comes in one poll with bytes for a clean end, so the bytes get a head start.
  async function settle(): Promise<void> {
    await elapsed(resetHeadStartMs);
    await nextTurn();
  }

  function delayed(ms: number): Transform {
    const later = new Transform({
      transform(bytes: Buffer, _encoding, done) {
        elapsed(ms).then(() => done(null, bytes), done);
      },
    });
    // Nothing goes on when the proxy closes.
    return later.on("error", () => {});
  }

  function elapsed(ms: number): Promise<void> {
    return elapse(ms, undefined, { signal: closing.signal });
  }

  function end(client: Socket, how: "fin" | "rst"): void {
    if (how === "rst") {
      client.resetAndDestroy();
    } else {
      // Reads on until the client hangs up too: closing with unread bytes would turn the FIN into a reset.
      client.unpipe();
      client.resume();
      client.end();
    }
    add("cuts", 1);
  }

  server.listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  return {
    host,
    port,
    url: `http://${host}:${port}`,
    counters,
    reached(counter, count) {
      if (counters[counter] >= count) return Promise.resolve();
      return new Promise((settle) => waiting.add({ counter, count, settle }));
    },
    release: () => released.resolve(),
    cutAll(how) {
      for (const client of clients) end(client, how);
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      closing.abort();
      released.resolve();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function write(client: Socket, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    client.write(bytes, (failure) => (failure ? reject(failure) : resolve()));
  });
}

function deferred(): { readonly promise: Promise<void>; resolve(): void } {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
