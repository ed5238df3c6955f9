// What the disk itself can do: lines that come over a socket are appended to a file, and answered with their number once
// they are flushed. What comes while a flush is on its way goes with the next.

import { fdatasync, openSync, writeSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";

const file = openSync(join(process.argv[2] as string, "log"), "a");

const server = createServer((socket) => {
  let waiting: Buffer[] = [];
  let flushing = false;
  let lines = 0;
  const flush = (): void => {
    if (waiting.length === 0) return;
    flushing = true;
    const bytes = Buffer.concat(waiting);
    waiting = [];
    writeSync(file, bytes);
    for (const byte of bytes) if (byte === 10) lines += 1;
    fdatasync(file, (error) => {
      if (error !== null) throw error;
      flushing = false;
      socket.write(`${lines}\n`);
      flush();
    });
  };
  socket.on("error", () => socket.destroy());
  socket.on("data", (chunk: Buffer) => {
    waiting.push(chunk);
    if (!flushing) flush();
  });
});

server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`file listening on http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
