import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type FaultPlan, type FaultProxy, faultProxy } from "./fault-proxy.js";

const response = Buffer.from(Array.from({ length: 500 }, (_, i) => i % 251));

let server: Server;
const accepted = new Set<Socket>();

// Sends the response in five segments as soon as the client has said something, then ends.
beforeEach(async () => {
  server = createServer((socket) => {
    accepted.add(socket);
    socket.on("error", () => {}).on("close", () => accepted.delete(socket));
    socket.once("data", async () => {
      for (let from = 0; from < response.length && socket.writable; from += 100) {
        await new Promise((resolve) => socket.write(response.subarray(from, from + 100), resolve));
      }
      socket.end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});

afterEach(async () => {
  const closed = once(server, "close");
  server.close();
  for (const socket of accepted) socket.destroy();
  await closed;
});

async function proxied<T>(
  planOf: (connection: number) => FaultPlan,
  use: (proxy: FaultProxy) => Promise<T>,
): Promise<T> {
  const proxy = await faultProxy({ host: "127.0.0.1", port: (server.address() as AddressInfo).port }, planOf);
  try {
    return await use(proxy);
  } finally {
    await proxy.close();
  }
}

interface Got {
  readonly bytes: Buffer;
  readonly end: "clean" | string;
}

/** What a client gets, and how it ended for it. */
async function fetchThrough(proxy: FaultProxy, heard: (bytes: Buffer) => void = () => {}): Promise<Got> {
  const socket = connect(proxy.port, proxy.host);
  const pieces: Buffer[] = [];
  let end = "clean";
  socket.on("data", (bytes) => {
    pieces.push(bytes);
    heard(bytes);
  });
  socket.on("error", (failure: NodeJS.ErrnoException) => {
    end = failure.code ?? "unknown";
  });
  socket.write("go");
  await once(socket, "close").catch(() => {});
  return { bytes: Buffer.concat(pieces), end };
}

describe("the fault proxy", () => {
  it("changes nothing without a plan", () =>
    proxied(
      () => ({}),
      async (proxy) => {
        expect(await fetchThrough(proxy)).toEqual({ bytes: response, end: "clean" });
        expect(proxy.counters).toMatchObject({
          connections: 1,
          requestBytes: 2,
          responseBytes: 500,
          cuts: 0,
        });
      },
    ));

  it("cuts cleanly after exactly the bytes it was told, however the response was split", () =>
    fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: response.length }),
        fc.integer({ min: 1, max: 60 }),
        (afterBytes, splitBytes) =>
          proxied(
            () => ({ cut: { afterBytes, how: "fin" }, splitBytes }),
            async (proxy) => {
              expect(await fetchThrough(proxy)).toEqual({
                bytes: response.subarray(0, afterBytes),
                end: "clean",
              });
              expect(proxy.counters).toMatchObject({ responseBytes: afterBytes, cuts: 1 });
            },
          ),
      ),
      { numRuns: 20 },
    ));

  it("resets where it was told to, and the client can tell", () =>
    proxied(
      () => ({ cut: { afterBytes: 250, how: "rst" } }),
      async (proxy) => {
        const { bytes, end } = await fetchThrough(proxy);
        expect(end).toBe("ECONNRESET");
        expect(response.subarray(0, 250).subarray(0, bytes.length)).toEqual(bytes);
        expect(bytes.length).toBeLessThanOrEqual(250);
      },
    ));

  it("repeats one segment", () =>
    proxied(
      () => ({ repeat: { atByte: 0 }, splitBytes: 7 }),
      async (proxy) => {
        const { bytes } = await fetchThrough(proxy);
        const extra = bytes.length - response.length;
        expect(extra).toBeGreaterThan(0);
        expect(bytes).toEqual(Buffer.concat([response.subarray(0, extra), response]));
        expect(proxy.counters.repeats).toBe(1);
      },
    ));

  it("stalls with the connection open until it is released", () =>
    proxied(
      () => ({ stall: { afterBytes: 120 } }),
      async (proxy) => {
        let heard = 0;
        const got = fetchThrough(proxy, (bytes) => {
          heard += bytes.length;
        });
        await proxy.reached("stalls", 1);
        expect(proxy.counters.responseBytes).toBe(120);
        proxy.release();
        expect(await got).toEqual({ bytes: response, end: "clean" });
        expect(heard).toBe(500);
      },
    ));

  it("delays segments, and slows them, without losing one", () =>
    proxied(
      (n) => (n === 0 ? { delayMs: 1 } : { delayMs: 1, bytesPerSecond: 20_000, splitBytes: 7 }),
      async (proxy) => {
        for (let n = 0; n < 2; n++)
          expect(await fetchThrough(proxy)).toEqual({ bytes: response, end: "clean" });
      },
    ));

  it("gives each connection its own plan", () =>
    proxied(
      (n) => (n === 0 ? { cut: { afterBytes: 10, how: "fin" } } : {}),
      async (proxy) => {
        expect((await fetchThrough(proxy)).bytes.length).toBe(10);
        expect((await fetchThrough(proxy)).bytes.length).toBe(500);
      },
    ));

  it("cuts what is open when asked to", () =>
    proxied(
      () => ({ stall: { afterBytes: 1 } }),
      async (proxy) => {
        const firstByte = () => {
          let heard: (bytes: Buffer) => void = () => {};
          const arrived = new Promise((resolve) => {
            heard = resolve;
          });
          return { arrived, heard };
        };
        const [one, two] = [firstByte(), firstByte()];
        const all = [fetchThrough(proxy, one.heard), fetchThrough(proxy, two.heard)];
        await Promise.all([one.arrived, two.arrived]);
        proxy.cutAll("rst");
        for (const { end } of await Promise.all(all)) expect(end).toBe("ECONNRESET");
        expect(proxy.counters.cuts).toBe(2);
      },
    ));

  it("closes with stalled, delayed and slow connections open, and leaves no socket behind", async () => {
    // Handles of earlier connections close in the background; this waits for the last of them.
    await vi.waitUntil(() => handles().every((name) => name !== "TCPSocketWrap"));
    const before = handles();
    await proxied(
      (n) => [{ stall: { afterBytes: 1 } }, { delayMs: 60_000 }, { bytesPerSecond: 0.01 }][n] ?? {},
      async (proxy) => {
        const all = [fetchThrough(proxy), fetchThrough(proxy), fetchThrough(proxy)];
        await proxy.reached("stalls", 1);
        await proxy.reached("connections", 3);
        // One came before the stall; the others wait far longer than this lasts.
        expect(proxy.counters.responseBytes).toBe(1);
        await proxy.close();
        await Promise.all(all);
        await Promise.all([...accepted].map((socket) => once(socket, "close")));
      },
    );
    await vi.waitUntil(() => handles().length <= before.length);
  });

  it("ends the client when the server is not there", async () => {
    const proxy = await faultProxy({ host: "127.0.0.1", port: 1 });
    expect((await fetchThrough(proxy)).bytes.length).toBe(0);
    await proxy.close();
  });
});

function handles(): readonly string[] {
  return process
    .getActiveResourcesInfo()
    .filter((name) => name === "Timeout" || name.startsWith("TCP"))
    .sort();
}
