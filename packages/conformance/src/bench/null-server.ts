// What Node can do when nothing is promised: no log, no disk, no cursors. Every figure of the benchmark is a
// ratio against this server, in the same run.
//
//   POST /append   reads the body, writes it as one SSE frame to every stream, answers
//   GET  /stream   an SSE stream that lasts
//   GET  /bytes    a fixed body of the size given in ?mb=, from memory

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const streams = new Set<ServerResponse>();
const block = Buffer.alloc(64 * 1024, "x");

const server = createServer({ requestTimeout: 0 }, (req, res) => {
  if (req.method === "POST") {
    const chunks: Buffer[] = [];
    req.on("data", (chunk: Buffer) => chunks.push(chunk));
    req.on("end", () => {
      const frame = `data: ${Buffer.concat(chunks).toString()}\n\n`;
      for (const stream of streams) stream.write(frame);
      const answer = '{"first_pos":1,"last_pos":1}';
      res.writeHead(200, { "Content-Type": "application/json", "Content-Length": answer.length });
      res.end(answer);
    });
    return;
  }
  if (req.url?.startsWith("/bytes")) {
    let left = Number(req.url.split("mb=")[1]) * 16;
    const send = (): void => {
      while (left > 0) {
        left -= 1;
        if (!res.write(block)) {
          res.once("drain", send);
          return;
        }
      }
      res.end();
    };
    res.writeHead(200, { "Content-Type": "application/octet-stream" });
    send();
    return;
  }
  res.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-cache" });
  res.flushHeaders();
  streams.add(res);
  res.on("close", () => streams.delete(res));
});

server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`null listening on http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
