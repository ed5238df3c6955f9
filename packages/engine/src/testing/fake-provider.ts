// A provider on a port of its own that speaks the real wires, and fails as real ones do, on request.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { loopback } from "./loopback.js";
import type { FakeAnswer, FakeWire } from "./wires/answer.js";
import { anthropicWire } from "./wires/anthropic.js";
import { chatWire } from "./wires/chat.js";
import { responsesWire } from "./wires/responses.js";

export type Turn =
  | {
      readonly kind: "answer";
      readonly answer: FakeAnswer;
      /** Sizes of the pieces that it is written in, used in turn; whole where there are none. */
      readonly pieceBytes?: readonly number[];
      /** Breaks off there: with a clean end, or as if the line were cut. */
      readonly cut?: { readonly afterBytes: number; readonly how: "clean" | "line" };
      /** Says no more from there on, and holds the line. */
      readonly silentAfterBytes?: number;
      readonly contentType?: string;
      /** Puts this before the wire's last event. */
      readonly insert?: string;
      /** Puts this before its first. */
      readonly before?: string;
    }
  | {
      readonly kind: "refusal";
      readonly status: number;
      readonly headers?: { readonly [name: string]: string };
      readonly body: string;
    }
  /** Not even a head. */
  | { readonly kind: "silence" };

export interface FakeRequest {
  readonly path: string;
  readonly headers: { readonly [name: string]: string | readonly string[] | undefined };
  readonly body: unknown;
  /** The beginning of the answer that it asks to go on from. */
  readonly partial: string;
  /** Resolves when the line is closed before the answer has ended. */
  readonly hungUp: Promise<unknown>;
}

export interface FakeProvider {
  /** With `/v1`. */
  readonly url: string;
  readonly requests: readonly FakeRequest[];
  /** How the next requests are answered. */
  script(turn: (request: FakeRequest, n: number) => Turn): void;
  /** Resolves with the next request to come. */
  asked(): Promise<FakeRequest>;
  close(): Promise<void>;
}

const wires: readonly FakeWire[] = [anthropicWire, chatWire, responsesWire];

export async function fakeProvider(): Promise<FakeProvider> {
  let requests: FakeRequest[] = [];
  let turnOf: (request: FakeRequest, n: number) => Turn = () => ({ kind: "silence" });
  const waiting: ((request: FakeRequest) => void)[] = [];

  async function answer(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const wire = wires.find(({ path }) => path === message.url);
    if (wire === undefined) return refuse(response, 404, {}, "no such path");
    const body = await json(message);
    const hungUp = new Promise((resolve) =>
      response.once("close", () => {
        if (!response.writableFinished) resolve(undefined);
      }),
    );
    const { url: path = "", headers } = message;
    const request = { path, headers, body, partial: wire.partialOf(body), hungUp };
    requests.push(request);
    const turn = turnOf(request, requests.length - 1);
    for (const heard of waiting.splice(0)) heard(request);
    switch (turn.kind) {
      case "silence":
        return;
      case "refusal":
        return refuse(response, turn.status, turn.headers ?? {}, turn.body);
      case "answer":
        return speak(response, wire, turn, (body as { model: string }).model);
    }
  }

  const server = createServer((message, response) => {
    answer(message, response).catch((error: unknown) => response.destroy(error as Error));
  });
  const { url, close } = await loopback(server);
  return {
    url: `${url}/v1`,
    get requests() {
      return requests;
    },
    script(turn) {
      requests = [];
      turnOf = turn;
    },
    asked: () => new Promise((resolve) => waiting.push(resolve)),
    close,
  };
}

async function speak(
  response: ServerResponse,
  wire: FakeWire,
  turn: Extract<Turn, { kind: "answer" }>,
  model: string,
): Promise<void> {
  response.writeHead(200, {
    "content-type": turn.contentType ?? "text/event-stream",
    "x-request-id": "req_fake",
    "request-id": "req_fake",
  });
  const bytes = bytesOf((turn.before ?? "") + wire.encode(turn.answer, model), turn.insert);
  const endsAt = turn.cut?.afterBytes ?? turn.silentAfterBytes ?? bytes.length;
  for (const piece of piecesOf(bytes.subarray(0, endsAt), turn.pieceBytes)) {
    if (response.destroyed) return;
    await new Promise((resolve) => response.write(piece, resolve));
  }
  if (turn.silentAfterBytes !== undefined) response.flushHeaders();
  else if (turn.cut?.how === "line") {
    response.flushHeaders();
    response.socket?.destroySoon();
  } else response.end();
}

function bytesOf(text: string, insert: string | undefined): Buffer {
  if (insert === undefined) return Buffer.from(text);
  const last = text.lastIndexOf("\n\n", text.length - 3) + 2;
  return Buffer.from(text.slice(0, last) + insert + text.slice(last));
}

function* piecesOf(bytes: Buffer, sizes: readonly number[] = []): Generator<Buffer> {
  let at = 0;
  for (let i = 0; at < bytes.length; i++) {
    const size = sizes[i % Math.max(1, sizes.length)] ?? bytes.length;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

function refuse(
  response: ServerResponse,
  status: number,
  headers: { readonly [name: string]: string },
  body: string,
): void {
  response.writeHead(status, { "content-type": "application/json", "x-request-id": "req_fake", ...headers });
  response.end(body);
}
