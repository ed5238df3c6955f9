// What most teams build first: a row per event, read as rows, made objects, and said as JSON for each reader.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";

const database = new DatabaseSync(join(process.argv[2] as string, "rows.db"));
database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
database.exec("CREATE TABLE events (pos INTEGER PRIMARY KEY, at TEXT, type TEXT, payload TEXT)");
const insert = database.prepare("INSERT INTO events (at, type, payload) VALUES (?, ?, ?)");
const all = database.prepare("SELECT pos, at, type, payload FROM events ORDER BY pos");

const server = createServer({ requestTimeout: 0 }, (req, res) => {
  if (req.method === "POST") {
    const chunks: Buffer[] = [];
    req.on("data", (chunk: Buffer) => chunks.push(chunk));
    req.on("end", () => {
      const drafts = JSON.parse(Buffer.concat(chunks).toString()) as { type: string; payload: object }[];
      database.exec("BEGIN");
      for (const { type, payload } of drafts)
        insert.run(new Date().toISOString(), type, JSON.stringify(payload));
      database.exec("COMMIT");
      res.writeHead(200, { "Content-Length": 2 }).end("{}");
    });
    return;
  }
  res.writeHead(200, { "Content-Type": "text/event-stream" });
  for (const { pos, at, type, payload } of all.all() as { [column: string]: string }[]) {
    const event = { pos, at, type, payload: JSON.parse(payload as string) as object };
    res.write(`id: ${pos}\ndata: ${JSON.stringify(event)}\n\n`);
  }
});

server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`rows listening on http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
