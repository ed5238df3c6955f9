// A server for tests that holds one finished log and speaks the wire exactly: SSE, NDJSON, WebSocket, pages.
// Each connection takes one fault from the list; when none is left, it is served whole.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Event, koder, type Message, runwire, sseFrame, sseRetry } from "@runwire/protocol";
import { type WebSocket, WebSocketServer } from "ws";

/** What goes wrong on one connection. */
export type Fault =
  /** Sends so many bytes (of a WebSocket: messages) and ends, cleanly or not. */
  | { readonly kind: "cut"; readonly after: number; readonly clean: boolean; readonly retryMs?: number }
  /** Sends so many bytes (of a WebSocket: messages), and then nothing more. */
  | { readonly kind: "hang"; readonly after: number }
  /** Answers with a status before anything is sent. */
  | { readonly kind: "refuse"; readonly status: number; readonly body?: string; readonly retryAfter?: string }
  /** WebSocket only: closes with this code after so many messages. */
  | { readonly kind: "close"; readonly after: number; readonly code: number; readonly reason?: string };

export interface WireServer {
  readonly base: string;
  /** Path and query of every request, in order. */
  readonly requests: string[];
  /** Resolves when a WebSocket has gone. */
  hungUp(): Promise<void>;
  close(): Promise<void>;
}

export async function wireServer(log: readonly Event[], faults: Fault[] = []): Promise<WireServer> {
  const requests: string[] = [];
  let gone = () => {};
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: ([first]) => first ?? false });

  const server = createServer((request, response) => {
    requests.push(request.url ?? "");
    const url = new URL(request.url ?? "", "http://test");
    if (url.pathname.endsWith("/events")) return sendPage(response, log, url);
    if (!url.pathname.endsWith("/stream")) return void response.writeHead(404).end();
    const fault = faults.shift();
    if (fault?.kind === "refuse") return refuse(response, fault);
    sendStream(request, response, messagesAfter(log, url), fault);
  });
  server.on("upgrade", (request, socket, head) => {
    requests.push(request.url ?? "");
    const fault = faults.shift();
    if (fault?.kind === "refuse") return void socket.end(`HTTP/1.1 ${fault.status} No\r\n\r\n`);
    const messages = messagesAfter(log, new URL(request.url ?? "", "http://test"));
    sockets.handleUpgrade(request, socket, head, (ws) => {
      ws.once("close", () => gone());
      sendFrames(ws, messages, fault);
    });
  });

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    hungUp: () =>
      new Promise((resolve) => {
        gone = resolve;
      }),
    close: () =>
      new Promise((resolve) => {
        for (const client of sockets.clients) client.terminate();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function messagesAfter(log: readonly Event[], url: URL): readonly Message[] {
  const dialect = [koder, runwire].find(({ name }) => name === (url.searchParams.get("dialect") ?? "koder"));
  if (dialect === undefined) throw new Error("unknown dialect");
  const after = Number(url.searchParams.get("after") ?? 0);
  return log
    .filter((event) => event[dialect.cursor] > after)
    .flatMap((event) => dialect.step(null, event)[1]);
}

function sendStream(
  request: IncomingMessage,
  response: ServerResponse,
  messages: readonly Message[],
  fault?: Fault,
): void {
  if (messages.length === 0) return void response.writeHead(204).end();
  const sse = request.headers.accept !== "application/x-ndjson";
  response.writeHead(200, {
    "content-type": sse ? "text/event-stream; charset=utf-8" : "application/x-ndjson",
  });
  const body = Buffer.from(
    messages.map((message) => (sse ? sseFrame(message) : `${message.data}\n`)).join(""),
  );
  if (fault?.kind === "hang") return void response.write(body.subarray(0, fault.after));
  if (fault?.kind !== "cut") return void response.end(body);
  const goodbye = fault.retryMs === undefined ? "" : sseRetry(fault.retryMs);
  const sent = Buffer.concat([body.subarray(0, fault.after), Buffer.from(goodbye)]);
  if (fault.clean) return void response.end(sent);
  response.flushHeaders();
  // The bytes leave before the connection is torn down; what was torn off is another test's business.
  response.write(sent, () => response.destroy());
}

function sendFrames(ws: WebSocket, messages: readonly Message[], fault?: Fault): void {
  const count = fault === undefined || fault.kind === "refuse" ? messages.length : fault.after;
  for (const { data } of messages.slice(0, count)) ws.send(data);
  if (fault?.kind === "hang") return;
  if (fault?.kind === "close") ws.close(fault.code, fault.reason);
  else if (fault?.kind === "cut" && !fault.clean) ws.terminate();
  else ws.close(fault === undefined ? 1000 : 1012);
}

function sendPage(response: ServerResponse, log: readonly Event[], url: URL): void {
  const eventsMax = Number(url.searchParams.get("limit"));
  const events = messagesAfter(log, url).slice(0, eventsMax);
  response.writeHead(200, { "content-type": "application/json" });
  response.end(`{"events":[${events.map(({ data }) => data).join(",")}],"next":null}`);
}

function refuse(
  response: ServerResponse,
  { status, body = "", retryAfter }: Fault & { kind: "refuse" },
): void {
  response.writeHead(status, retryAfter === undefined ? {} : { "retry-after": retryAfter }).end(body);
}
