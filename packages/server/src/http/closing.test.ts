import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, it } from "vitest";
import { breakOff } from "./closing.js";

/** How an answer that is broken off ends for its reader: whether with an error, and what came before. */
async function readBroken(version: string): Promise<{ readonly heard: string; readonly error?: string }> {
  let answering: ServerResponse | undefined;
  const server = createServer((_req, res) => {
    answering = res;
    res.write("some of it");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const reader = connect((server.address() as AddressInfo).port, "127.0.0.1");
  reader.write(`GET / HTTP/${version}\r\nHost: here\r\n\r\n`);
  let heard = "";
  let error: string | undefined;
  reader.on("data", (bytes: Buffer) => {
    heard += bytes.toString();
    // Not before it is heard: what comes with an end, a reader may take without looking how it ends.
    if (heard.includes("some of it") && answering !== undefined) breakOff(answering);
  });
  reader.on("error", ({ code }: NodeJS.ErrnoException) => {
    error = code;
  });
  await new Promise((resolve) => reader.once("close", resolve));
  server.close();
  return error === undefined ? { heard } : { heard, error };
}

it("an answer that is broken off is not taken for whole, also where it ends with the connection", async () => {
  // Chunks have a last one, and it did not come.
  expect((await readBroken("1.1")).heard).not.toContain("0\r\n\r\n");
  expect(await readBroken("1.0")).toMatchObject({ error: "ECONNRESET" });
});
