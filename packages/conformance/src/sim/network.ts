// A network in memory, on which connections are slow, cut to pieces, silent or broken, as the dice say. Node's own HTTP
// speaks over it, on both sides.

import { AsyncLocalStorage } from "node:async_hooks";
import { type IncomingMessage, request } from "node:http";
import { Duplex } from "node:stream";
import type { Awaits } from "./awaits.js";
import type { HeldTime } from "./time.js";

export interface NetworkFaults {
  /** Of a connection that is cut somewhere. */
  readonly cutShare: number;
  /** Of a connection on which, from somewhere on, nothing comes any more, and nobody is told. */
  readonly silentShare: number;
  /** At most, of what is under way. */
  readonly delayMsMax: number;
}

/** One reader's way into the network. */
export interface Tap {
  readonly fetch: typeof fetch;
  connect(): Duplex;
  /** Whether what is sent to this side stays under way. It arrives in its order once it does not. */
  isShut: boolean;
  /** What of one connection has been sent to this side and was not taken, where that is the most. */
  readonly inFlightBytes: number;
  /** Of its connections: how many were refused, cut or fell silent. */
  readonly harmed: number;
}

export interface Network {
  /** Who answers from now on; undefined: nobody, connections are refused. */
  serve(take: ((connection: Duplex) => void) | undefined): void;
  connect(): Duplex;
  tap(): Tap;
  /** Whether what is done now is done for a request that is to change something, and has not been answered. */
  readonly isWriting: boolean;
  /** All that is open, or what one of its ends belongs to. */
  cutAll(owner?: string): void;
  /** What is open of somebody who stands still from now on may be ended by its other side, which does not wait for ever. */
  strain(owner: string): void;
  readonly fetch: typeof fetch;
  /** Nobody connects any more. */
  close(): void;
  readonly counts: { connections: number; cuts: number; refused: number };
}

const cutBytesMax = 20_000;

/** Whose timers the server's are. */
export const server = "server";

export function network(time: HeldTime, faults: NetworkFaults, awaits: Awaits): Network {
  const { random } = time;
  const asking = new AsyncLocalStorage<{ readonly isOpen: boolean }>();
  let take: ((connection: Duplex) => void) | undefined;
  const open = new Map<Duplex, { readonly owner: string; readonly valve: Valve }>();
  const counts = { connections: 0, cuts: 0, refused: 0 };

  function connectBy(valve: Valve): Duplex {
    counts.connections += 1;
    const cutAfter = random() < faults.cutShare ? Math.floor(random() ** 2 * cutBytesMax) : null;
    const silentAfter = random() < faults.silentShare ? Math.floor(random() ** 2 * cutBytesMax) : null;
    let carried = 0;
    const { owner } = time;
    let writes = false;
    const request = { isOpen: false };
    const sent = (chunk: Buffer, side: number): void => {
      const [, method] = /^([A-Z]{3,7}) \//.exec(chunk.toString("latin1", 0, 9)) ?? [];
      if (side === 1) request.isOpen = false;
      else if (method !== undefined) writes = method !== "GET";
    };
    const [near, far] = pair([owner, server], valve, sent, (bytes, side) => {
      if (writes && bytes > 0) {
        if (side === 0) request.isOpen = true;
        awaits.struck(side === 0 ? "arriving" : "answering");
      }
      carried += bytes;
      if (cutAfter !== null && carried > cutAfter) {
        counts.cuts += 1;
        valve.harmed += 1;
        return "cut";
      }
      if (silentAfter === null || carried <= silentAfter) return "carried";
      valve.harmed += 1;
      return "silent";
    });
    valve.ends.add(far);
    far.once("close", () => valve.ends.delete(far));
    for (const end of [near, far]) {
      open.set(end, { owner, valve });
      end.once("close", () => {
        open.delete(end);
        request.isOpen = false;
      });
      // Whoever uses it hears of it; nobody may be there any more.
      end.on("error", () => {});
    }
    if (take === undefined) {
      counts.refused += 1;
      valve.harmed += 1;
      setTimeout(() => near.destroy(reset("ECONNREFUSED")), 1);
    } else {
      const taking = take;
      time.within(server, () => {
        // One that stood still may be gone when it would have taken it.
        if (taking === take) asking.run(request, () => taking(far));
        else far.destroy(reset("ECONNRESET"));
      });
    }
    return near;
  }

  /** What is done at an end is done in the name of whoever has that end. */
  function pair(
    owners: readonly [string, string],
    valve: Valve,
    sent: (chunk: Buffer, side: number) => void,
    carry: (bytes: number, side: number) => "carried" | "cut" | "silent",
  ): readonly [Duplex, Duplex] {
    const ends: Duplex[] = [];
    const reads: ((() => void) | undefined)[] = [];
    for (const side of [0, 1]) {
      const other = (): Duplex => ends[1 - side] as Duplex;
      // What is sent arrives in the order in which it was sent.
      let freeMs = 0;
      const later = (what: () => void): void => {
        const nowMs = Date.now();
        freeMs = Math.max(freeMs, nowMs + Math.floor(random() ** 3 * faults.delayMsMax));
        time.as(owners[1 - side] ?? "", () => setTimeout(what, freeMs - nowMs));
      };
      const arrives = (what: () => void): void => later(side === 0 ? what : () => valve.pass(what));
      ends[side] = new Duplex({
        read() {
          reads[side]?.();
          reads[side] = undefined;
        },
        write(chunk: Buffer, _encoding, written) {
          sent(chunk, side);
          const done = (): void => time.within(owners[side] ?? "", written);
          const cut = Math.floor(random() * chunk.length);
          const pieces = [chunk.subarray(0, cut), chunk.subarray(cut)].filter(({ length }) => length > 0);
          for (const [i, piece] of pieces.entries()) {
            arrives(() => {
              if (other().destroyed) {
                done();
                return;
              }
              const how = carry(piece.length, side);
              // What has happened to the server just now has taken the connection too.
              if (other().destroyed) {
                done();
                return;
              }
              if (how === "cut") {
                for (const end of ends) end.destroy(reset("ECONNRESET"));
                return;
              }
              if (how === "silent") return;
              const takesMore = other().push(piece);
              if (i < pieces.length - 1) return;
              if (takesMore) done();
              else reads[1 - side] = done;
            });
          }
          if (pieces.length === 0) done();
        },
        final(done) {
          arrives(() => {
            if (!other().destroyed && carry(0, side) !== "silent") other().push(null);
          });
          done();
        },
        destroy(error, done) {
          // Whoever goes after it has said all takes back nothing of what is not read yet.
          const hasSaidAll = error === null && this.writableFinished;
          later(() => {
            if (!hasSaidAll) other().destroy(error === null ? undefined : reset("ECONNRESET"));
          });
          done(error);
        },
      });
    }
    return ends as [Duplex, Duplex];
  }

  const connect = (): Duplex => connectBy(valveOf());
  const fetchBy =
    (connecting: () => Duplex): typeof fetch =>
    (url, init) =>
      fetchOver(connecting, String(url), init ?? {});

  return {
    counts,
    serve(server) {
      take = server;
    },
    connect,
    get isWriting() {
      return asking.getStore()?.isOpen === true;
    },
    close: () => asking.disable(),
    cutAll(of) {
      for (const [end, { owner, valve }] of [...open]) {
        if (of !== undefined && of !== owner) continue;
        valve.harmed += 1;
        end.destroy(reset("ECONNRESET"));
      }
    },
    strain(owner) {
      for (const { owner: whose, valve } of open.values()) if (whose === owner) valve.harmed += 1;
    },
    fetch: fetchBy(connect),
    tap() {
      const valve = valveOf();
      const connectHere = (): Duplex => connectBy(valve);
      return {
        fetch: fetchBy(connectHere),
        connect: connectHere,
        get isShut() {
          return valve.isShut;
        },
        set isShut(value) {
          valve.isShut = value;
          if (!value) valve.flow();
        },
        get inFlightBytes() {
          return Math.max(0, ...[...valve.ends].map(({ writableLength }) => writableLength));
        },
        get harmed() {
          return valve.harmed;
        },
      };
    },
  };
}

/** What stands between the network and one side of some of its connections. */
interface Valve {
  isShut: boolean;
  harmed: number;
  /** The other ends. */
  readonly ends: Set<Duplex>;
  pass(arrival: () => void): void;
  flow(): void;
}

function valveOf(): Valve {
  const waiting: (() => void)[] = [];
  return {
    isShut: false,
    harmed: 0,
    ends: new Set(),
    pass(arrival) {
      if (this.isShut || waiting.length > 0) waiting.push(arrival);
      else arrival();
    },
    flow() {
      while (!this.isShut && waiting.length > 0) waiting.shift()?.();
    },
  };
}

function reset(code: string): Error {
  return Object.assign(new Error(code), { code });
}

const bodiless: ReadonlySet<number> = new Set([204, 304]);

/** A request over a connection of its own, with what the client of a gateway uses of `fetch`. */
function fetchOver(connect: () => Duplex, url: string, init: RequestInit): Promise<Response> {
  const { method = "GET", headers = {}, body, signal } = init;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const sent = request(url, {
      method,
      headers: {
        ...(headers as { [name: string]: string }),
        ...(typeof body === "string" ? { "content-length": String(Buffer.byteLength(body)) } : {}),
      },
      createConnection: connect as never,
    });
    const stop = (): void => void sent.destroy(signal?.reason as Error);
    signal?.addEventListener("abort", stop, { once: true });
    sent.once("error", reject);
    sent.once("close", () => signal?.removeEventListener("abort", stop));
    sent.once("response", (answer) => {
      const { statusCode: status = 0 } = answer;
      const given = Object.fromEntries(
        Object.entries(answer.headers).map(([name, value]) => [name, String(value)]),
      );
      const content = bodiless.has(status) ? null : bodyOf(answer);
      if (content === null) answer.resume();
      resolve(new Response(content, { status, headers: given }));
    });
    sent.end(body ?? undefined);
  });
}

/** Not by `Readable.toWeb`: in Node 20 that throws, and nobody can catch it, where something comes after the end. */
function bodyOf(answer: IncomingMessage): ReadableStream<Uint8Array> {
  const pieces = answer[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await pieces.next();
        if (done === true) controller.close();
        else controller.enqueue(value as Buffer);
      },
      cancel: () => void answer.destroy(),
    },
    { highWaterMark: 0 },
  );
}
