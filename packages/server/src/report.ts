// What the operator hears: one JSON object a line on stderr, without payloads or secrets.

import type { Writable } from "node:stream";
import { RunwireError } from "@runwire/protocol";

export const logLevels = ["error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof logLevels)[number];

type Facts = { readonly [fact: string]: unknown };

/** Facts may be a function where they cost something: it is only called where somebody hears them. */
export type Report = (level: LogLevel, what: string, facts?: Facts | (() => Facts)) => void;

/** `write` answers whether the line was taken; the first one that is again tells how many were not. */
export function reportTo(write: (line: string) => boolean, most: LogLevel, now: () => number): Report {
  const silentFrom = logLevels.indexOf(most) + 1;
  let lost = 0;

  function say(level: LogLevel, what: string, facts?: Facts): boolean {
    return write(`${JSON.stringify({ ts: new Date(now()).toISOString(), level, what, ...facts })}\n`);
  }

  return (level, what, facts) => {
    if (logLevels.indexOf(level) >= silentFrom) return;
    if (lost > 0 && say("warn", "log lines dropped", { lines: lost })) lost = 0;
    if (lost > 0 || !say(level, what, typeof facts === "function" ? facts() : facts)) lost += 1;
  };
}

/** What may wait for a reader of the log. */
const pendingBytesMax = 1024 * 1024;

/**
 * Lines to a stream that may be slow or closed: a server neither waits for those who read its log nor dies with
 * them. What they do not take is dropped and counted.
 */
export function linesTo(stream: Writable, dropped: (lines: number) => void): (line: string) => boolean {
  if (!guarded.has(stream)) stream.on("error", () => {});
  guarded.add(stream);
  return (line) => {
    if (stream.writableLength > pendingBytesMax) {
      dropped(1);
      return false;
    }
    stream.write(line, (error) => {
      if (error) dropped(1);
    });
    return true;
  };
}

/** Several gateways of one process share its stderr. */
const guarded = new WeakSet<Writable>();

/** What whoever asked is told: of a bug that there was one, and the id under which the operator has the rest. */
export function toldOf(report: Report, error: unknown, requestId: string): RunwireError {
  if (error instanceof RunwireError) return error;
  const told = new RunwireError("KAI-SERVER-BUG-0001", requestId);
  report("error", "bug", { code: told.code, request_id: requestId, stack: stackOf(error) });
  return told;
}

/**
 * Where a bug is. A parser's message quotes what it could not read, which may be anybody's secret, so of those only
 * the place is told.
 */
export function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  if (!(error instanceof SyntaxError)) return error.stack ?? error.message;
  const places = (error.stack ?? "").split("\n").filter((line) => line.startsWith("    at "));
  return [error.name, ...places].join("\n");
}
