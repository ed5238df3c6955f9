import { once } from "node:events";
import { createServer as createPlain, type ServerResponse } from "node:http";
import { connect as connectSession, createServer } from "node:http2";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, describe, it, vi } from "vitest";
import { giveText } from "./giving.js";
import { hasTurn, ownTurn } from "./turn.js";

afterEach(() => {
  vi.useRealTimers();
});

const stalledMs = 60_000;
const large = "x".repeat(16 * 1024 * 1024);

describe("a text that nobody takes", () => {
  it("is let go where its connection over HTTP/2 takes nothing any more, not even the end of a stream", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const server = createServer((_req, res) => giveText(res as unknown as ServerResponse, large));
    await once(server.listen(0, "127.0.0.1"), "listening");
    const opened = once(server, "session");
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    const client = connectSession("http://here", {
      createConnection: () => socket,
      settings: { initialWindowSize: 2 ** 31 - 1 },
    });
    client.on("error", () => {});
    const [[session]] = await Promise.all([opened, once(client, "connect")]);
    client.setLocalWindowSize(2 ** 30);
    const asked = client.request({ ":path": "/" });
    asked.on("error", () => {});
    await once(asked, "response");
    stop(socket);
    const closed = once(session, "close");
    vi.advanceTimersByTime(2 * stalledMs);
    await closed;
    client.destroy();
    server.close();
  });

  it("is let go with its connection, however little it is", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const little = "x".repeat(60 * 1024);
    const server = createPlain(async (_req, res) => {
      if (!hasTurn(res)) await ownTurn(res);
      giveText(res, little);
      if (res.writableLength > 0) vi.advanceTimersByTime(stalledMs);
    });
    const accepted = once(server, "connection");
    await once(server.listen(0, "127.0.0.1"), "listening");
    const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
    client.on("error", () => {});
    client.write("GET / HTTP/1.1\r\nHost: here\r\n\r\n".repeat(300));
    client.pause();
    const [connection] = await accepted;
    await once(connection, "close");
    client.destroy();
    server.close();
  });
});

/** What a session reads by itself is not to be paused: the system is not asked any more. */
function stop(socket: Socket): void {
  (socket as unknown as { _handle: { readStop(): void } })._handle.readStop();
}
