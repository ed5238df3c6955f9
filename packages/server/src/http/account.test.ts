import { once } from "node:events";
import { createServer as createServer1, type RequestListener, request } from "node:http";
import { connect, createServer as createServer2 } from "node:http2";
import type { AddressInfo, Server } from "node:net";
import { expect, it } from "vitest";
import { type Accounts, accounts } from "./account.js";

/** What is reported of one request that is answered with some bytes. */
async function reported(
  newServer: (listener: RequestListener) => Server,
  ask: (url: string) => () => void,
): Promise<object> {
  let told: (line: object) => void = () => {};
  const line = new Promise<object>((resolve) => {
    told = resolve;
  });
  const kept: Accounts = accounts({
    clock: { now: () => 0, monotonic: () => 0 },
    metrics: { requestAnswered() {} } as never,
    report: (_level, _what, facts) => told(typeof facts === "function" ? facts() : (facts ?? {})),
  });
  const server = newServer((req, res) => {
    kept.request(req, res, () => {});
    res.end("x".repeat(1000));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const leave = ask(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const found = await line;
  leave();
  server.close();
  return found;
}

it("a request is reported with its bytes, or without where its connection is shared", async () => {
  const own = await reported(createServer1, (url) => {
    request(url, { agent: false }, (res) => res.resume()).end();
    return () => {};
  });
  expect(own).toMatchObject({ status: 200, bytes: expect.any(Number) });
  const shared = await reported(
    (listener) => createServer2(listener as never),
    (url) => {
      const session = connect(url);
      session.request({ ":path": "/" }).resume().end();
      return () => session.destroy();
    },
  );
  expect(shared).toMatchObject({ status: 200 });
  expect(shared).not.toHaveProperty("bytes");
});
