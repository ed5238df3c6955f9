// WebSocket, in the browser or with a constructor such as `ws` (Node 20 has none of its own). The browser's
// has no back-pressure and hides both pings and the reason of a refused upgrade; each is made up for below.

import { type ErrorCode, errorTable, isErrorCode, type Message, RunwireError } from "@runwire/protocol";
import { unlessAborted } from "../abort.js";
import { ask, urlOf } from "../http.js";
import { limits } from "../limits.js";
import { detailOf } from "../refusal.js";
import { dialectOf, endingOf, pagesOf, type RunStreamOptions, runStreamPath } from "./run-stream.js";
import type { Batches, Cursors, Ending, Source } from "./source.js";

export interface WebSocketStreamOptions extends RunStreamOptions {
  /** The platform's own unless given; in Node 20, `ws`. */
  readonly WebSocket?: new (
    url: string,
    protocols: string[],
  ) => unknown;
  /** A stream ticket for each connection, because a browser's WebSocket sends no headers. */
  readonly ticket?: () => Promise<string>;
}

/** What `ws` has besides the platform's interface. */
type Socket = WebSocket & { on?(event: "ping", heard: () => void): void; terminate?(): void };

export function webSocketSource(stream: WebSocketStreamOptions): Source {
  const construct = constructorOf(stream);
  return {
    dialect: dialectOf(stream),
    runs: [stream.run_id],
    silenceMsMax: "on" in construct.prototype ? limits.silenceMsMax : limits.unseenPingsMsMax,
    open: (at, signal) => readWebSocket(stream, at, signal),
    page: pagesWithout(pagesOf(stream)),
  };
}

/** Stored events take no ticket: whoever has nothing else is not refused the stream for that, and is told the gap. */
function pagesWithout(page: NonNullable<Source["page"]>): NonNullable<Source["page"]> {
  return (...asked) =>
    page(...asked).catch((error: unknown) => {
      if (error instanceof RunwireError && error.code === "KAI-AUTH-TOKEN-0001") return [];
      throw error;
    });
}

function constructorOf(stream: WebSocketStreamOptions): NonNullable<WebSocketStreamOptions["WebSocket"]> {
  const construct = stream.WebSocket ?? globalThis.WebSocket;
  if (construct === undefined)
    throw new Error("no WebSocket here: pass one, such as that of the package `ws`");
  return construct;
}

async function* readWebSocket(stream: WebSocketStreamOptions, at: Cursors, signal: AbortSignal): Batches {
  const construct = constructorOf(stream);
  let ticket: string | undefined;
  try {
    ticket = await unlessAborted(stream.ticket?.(), signal);
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof RunwireError && !cause.row.retry) throw cause;
    return { close: "broken", cause };
  }
  signal.throwIfAborted();
  const path = runStreamPath(stream, at, ticket);
  const url = new URL(urlOf(stream, path), globalThis.location?.href);
  url.protocol = url.protocol.replace("http", "ws");
  const socket = new construct(url.href, [subprotocol(dialectOf(stream).name)]) as Socket;
  const opened = { yet: false };
  const ending = yield* readSocket(socket, signal, opened);
  return opened.yet || signal.aborted ? ending : await whyRefused(stream, path, ending, signal);
}

async function* readSocket(socket: Socket, signal: AbortSignal, opened: { yet: boolean }): Batches {
  let unread: Message[] = [];
  let unreadChars = 0;
  let heard = false;
  let alive = false;
  let closed: { readonly code: number; readonly reason: string } | undefined;
  let wake = () => {};

  socket.onopen = () => {
    opened.yet = alive = true;
    wake();
  };
  socket.onmessage = ({ data }: { data: unknown }) => {
    if (typeof data !== "string" || closed !== undefined) return;
    heard = true;
    unread.push({ data });
    unreadChars += data.length;
    if (unreadChars > limits.socketCharsMax) hangUp(`over ${limits.socketCharsMax} unread characters`);
    wake();
  };
  socket.on?.("ping", () => {
    alive = true;
    wake();
  });
  // The close that follows tells as much as a browser's error does.
  socket.onerror = () => {};
  socket.onclose = (event: { code: number; reason: string }) => {
    closed ??= event;
    wake();
  };
  // Not waiting for the other side's goodbye: it may never come.
  const hangUp = (reason: string) => {
    closed ??= { code: 1006, reason };
    if (socket.terminate === undefined) socket.close();
    else socket.terminate();
    wake();
  };
  const stop = () => hangUp("aborted");
  signal.addEventListener("abort", stop, { once: true });

  try {
    for (;;) {
      if (unread.length > 0 || alive) {
        const batch = unread;
        unread = [];
        unreadChars = 0;
        alive = false;
        yield batch;
      } else if (closed !== undefined) {
        return endingOfClose(closed.code, closed.reason, heard);
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    signal.removeEventListener("abort", stop);
    socket.close();
  }
}

function subprotocol(dialect: string): string {
  return dialect === "koder" ? "koder-agent-stream-v1" : `runwire.${dialect}`;
}

function endingOfClose(code: number, reason: string, heard: boolean): Ending {
  // A terminal event would have ended the reading; so after anything else, 1000 is not yet the end, and a
  // further connection that brings nothing makes sure of it.
  if (code === 1000) return { close: heard ? "leaving" : "finished" };
  if (code === 1012) return { close: "leaving", cause: errorOfClose(code, reason) };
  // The credential has ended in mid-stream; the next connection asks for a ticket anew.
  if (code === errorTable["KAI-AUTH-TOKEN-0003"].close) return { close: "leaving" };
  const error = errorOfClose(code, reason);
  if (error?.row.retry === false) throw error;
  return { close: "broken", cause: error ?? new Error(`socket closed with ${code} ${reason}`.trim()) };
}

/** A server of ours says `code: message`; others may close with its number alone. */
function errorOfClose(code: number, reason: string): RunwireError | undefined {
  const [said = "", told] = /^(KAI-[A-Z]+-[A-Z]+-\d{4})[:\s]*/.exec(reason) ?? [];
  if (isErrorCode(told)) return new RunwireError(told, detailOf(told, reason.slice(said.length)));
  if (code < 4400 || code > 4499) return undefined;
  const rows = Object.entries(errorTable) as [ErrorCode, { readonly close?: number }][];
  const row = rows.find(([, { close }]) => close === code);
  return new RunwireError(row?.[0] ?? "KAI-STREAM-PARAM-0001", `socket closed with ${code} ${reason}`.trim());
}

/** No page hears why an upgrade was refused, so the same address, with the same ticket, is asked for over HTTP. */
async function whyRefused(
  stream: WebSocketStreamOptions,
  path: string,
  ending: Ending,
  signal: AbortSignal,
): Promise<Ending> {
  const answer = await ask(stream, { path, headers: { accept: "text/event-stream" }, signal });
  if (!answer.ok) return endingOf(answer);
  // Its head has said enough. Fails where the body already has; there is nobody left to tell.
  void answer.value.body?.cancel().catch(() => {});
  return ending;
}
