import { once } from "node:events";
import { createServer, get, type IncomingMessage } from "node:http";
import { afterEach, expect, it, vi } from "vitest";
import { listen } from "./listening.js";

afterEach(() => {
  vi.useRealTimers();
});

it("a server outlives connections that the system cannot hand over, and tells of each", async () => {
  const server = createServer();
  const told: unknown[] = [];
  const door = await listen(server, "127.0.0.1", 0, (error) => told.push(error));
  const errors = ["accept EMFILE", "accept ENOBUFS"].map((message) => new Error(message));
  // As the system's errors come: an 'error' event that nobody hears ends the process.
  for (const error of errors) server.emit("error", error);
  expect(told).toEqual(errors);
  await door.close(0);
});

it("an address that is taken is told to whoever wanted it, and to nobody else", async () => {
  const told: unknown[] = [];
  const failed = (error: unknown): void => void told.push(error);
  const first = await listen(createServer(), "127.0.0.1", 0, failed);
  await expect(listen(createServer(), "127.0.0.1", first.port, failed)).rejects.toThrow("is taken");
  expect(told).toEqual([]);
  await first.close(0);
});

it("an answer that is written and not yet taken is taken in the end, and no idle connection is waited for", async () => {
  const body = Buffer.alloc(32 * 1024 * 1024);
  const server = createServer((_req, res) => res.end(body));
  const door = await listen(server, "127.0.0.1", 0, () => {});
  const asking = get({ host: "127.0.0.1", port: door.port, headers: { connection: "keep-alive" } });
  const [answer] = (await once(asking, "response")) as [IncomingMessage];
  const closed = door.close(600_000);
  let bytes = 0;
  for await (const piece of answer) bytes += (piece as Buffer).length;
  expect(bytes).toBe(body.length);
  await closed;
});

it("an answer of which nothing is taken is not waited for as long as others may be", async () => {
  const server = createServer((_req, res) => res.end(Buffer.alloc(32 * 1024 * 1024)));
  const door = await listen(server, "127.0.0.1", 0, () => {});
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const [answer] = (await once(get({ host: "127.0.0.1", port: door.port }), "response")) as [IncomingMessage];
  answer.pause();
  const closed = door.close(600_000);
  let isClosed = false;
  void closed.then(() => {
    isClosed = true;
  });
  for (let looks = 0; looks < 1000 && !isClosed; looks++) {
    vi.advanceTimersByTime(50);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await closed;
  answer.destroy();
});
