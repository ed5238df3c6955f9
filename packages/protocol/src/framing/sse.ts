// Server-sent events, strictly: one `data:` line of JSON, `\n` only. JSON text holds no raw CR or LF and ids
// are checked at the edge, so nothing a producer sends can begin a line of its own.

import type { Message } from "../dialect.js";

export const keepalive = ": keepalive\n\n";

export function sseFrame(message: Message): string {
  return `${sseHead(message)}${message.data}${sseTail}`;
}

/** What goes before a message's data. */
export function sseHead({ id, event }: Omit<Message, "data">): string {
  return `${id === undefined ? "" : `id: ${id}\n`}${event === undefined ? "" : `event: ${event}\n`}data: `;
}

export const sseTail = "\n\n";

/** Tells the client how long to wait before it connects again; dispatches nothing. */
export function sseRetry(retryMs: number): string {
  return `retry: ${retryMs}\n\n`;
}

/** Sets the client's last event id; dispatches nothing. */
export function sseCursor(id: string): string {
  return `id: ${id}\n\n`;
}
