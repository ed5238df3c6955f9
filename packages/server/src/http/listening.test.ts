import { createServer } from "node:http";
import { expect, it } from "vitest";
import { listen } from "./listening.js";

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
