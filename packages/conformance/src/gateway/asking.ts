// One question to a server, over HTTP or for a WebSocket, and what it answers.

import { type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import { request as secureRequest } from "node:https";
import { errorTable, type Facts } from "@runwire/protocol";
import { WebSocket } from "ws";
import { refusalIn } from "./refusal-in.js";

export interface Headers {
  readonly [name: string]: string | string[];
}

export interface Question {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Headers;
  /** Sent as it is where it is a text, otherwise as JSON. */
  readonly body?: unknown;
  readonly upgrade?: boolean;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Empty where it would have no end. */
  readonly text: string;
  readonly code: string | undefined;
  readonly body: Facts;
  /** What a WebSocket was closed with. */
  readonly close?: number;
}

/** One question on a connection of its own. A stream or a WebSocket is left as soon as it has begun. */
export function ask(url: string, question: Question): Promise<Answer> {
  if (question.upgrade === true) return askSocket(url, question);
  const { method = "GET", path, headers = {}, body } = question;
  const content = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const send = url.startsWith("https:") ? secureRequest : request;
    const asking = send(url + path, {
      method,
      agent: false,
      // The certificate is the test's own.
      rejectUnauthorized: false,
      headers: {
        ...(body === undefined || typeof body === "string" ? {} : { "Content-Type": "application/json" }),
        ...headers,
      },
    });
    asking.once("error", reject);
    asking.once("response", (response) => {
      const status = response.statusCode ?? 0;
      if (status === 200 && /event-stream|ndjson/.test(response.headers["content-type"] ?? "")) {
        response.on("error", () => {});
        asking.destroy();
        resolve(answerOf(status, response.headers, ""));
        return;
      }
      wholeAnswer(response).then(resolve, reject);
    });
    asking.end(content);
  });
}

/** One that is opened and closed again with an error has that error's status, and 101 where it stays open. */
function askSocket(url: string, { path, headers = {} }: Question): Promise<Answer> {
  return new Promise((resolve, reject) => {
    // The certificate is the test's own.
    const options = { headers, rejectUnauthorized: false };
    const ws = new WebSocket(url.replace(/^http/, "ws") + path, options);
    let told: IncomingHttpHeaders = {};
    ws.once("error", reject);
    ws.once("unexpected-response", (_asking, response) => wholeAnswer(response).then(resolve, reject));
    ws.once("upgrade", ({ headers: { "sec-websocket-accept": _, ...headers } }) => {
      told = headers;
    });
    // What is to be closed at once is closed before this is answered.
    ws.once("open", () => ws.ping());
    ws.once("pong", () => {
      resolve(answerOf(101, told, ""));
      ws.terminate();
    });
    ws.once("close", (close, reason) => {
      const code = refusalIn(reason);
      const status = code === undefined ? 101 : errorTable[code].status;
      const error = { code, message: String(reason).slice(`${code}: `.length) };
      resolve({ status, headers: told, text: String(reason), code, body: { error }, close });
    });
  });
}

function wholeAnswer(response: IncomingMessage): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    response.once("error", reject);
    response.once("end", () =>
      resolve(answerOf(response.statusCode ?? 0, response.headers, Buffer.concat(chunks).toString())),
    );
  });
}

function answerOf(status: number, headers: IncomingHttpHeaders, text: string): Answer {
  const isJson = headers["content-type"]?.startsWith("application/json") ?? false;
  const body = isJson && text !== "" ? (JSON.parse(text) as Facts) : {};
  return { status, headers, text, body, code: (body.error as { code?: string } | undefined)?.code };
}
