import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, it } from "vitest";
import { hasTurn, ownTurn, waitingMax } from "./turn.js";

it("requests that wait behind one another are answered in as many turns of the loop", async () => {
  let turn = 0;
  let counting = setImmediate(count);
  function count(): void {
    turn += 1;
    counting = setImmediate(count);
  }
  const turns: number[] = [];
  const server = createServer(async (_req, res) => {
    if (!hasTurn(res)) await ownTurn(res);
    turns.push(turn);
    res.end();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  client.write("GET / HTTP/1.1\r\nHost: here\r\n\r\n".repeat(waitingMax));
  let answers = "";
  for await (const bytes of client) {
    answers += String(bytes);
    if (answers.match(/HTTP\/1\.1 200/g)?.length === waitingMax) break;
  }
  clearImmediate(counting);
  server.close();
  expect(new Set(turns).size).toBe(waitingMax);
});
