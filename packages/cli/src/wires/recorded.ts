// A recorded run as events: from the server, or from a file in any dialect.

import { type Endpoint, gateway } from "@runwire/client";
import {
  type Dialect,
  dialects,
  type Event,
  type LogReader,
  limits,
  logReader,
  RunwireError,
} from "@runwire/protocol";
import { type Input, readLine } from "./input.js";
import type { NumberedLine } from "./numbered-lines.js";

/** What the server has of it now. */
export async function* storedEvents(
  endpoint: Endpoint,
  run_id: string,
  full: boolean,
): AsyncGenerator<Event, void> {
  const server = gateway(endpoint);
  let after: number | null = 0;
  while (after !== null) {
    const page: Awaited<ReturnType<typeof server.events>> = await server.events(run_id, {
      after,
      limit: limits.pageEventsMax,
      ...(full ? { detail: "full" } : {}),
    });
    yield* page.events;
    after = page.next;
  }
}

export async function* fileEvents(
  { pieces, bad }: Pick<Input, "pieces" | "bad">,
  dialect: Dialect | undefined,
): AsyncGenerator<Event, void> {
  let reader = dialect === undefined ? undefined : logReader(dialect);
  // In a pipe the first piece may be no more than a greeting: it waits for what says more.
  let held: readonly NumberedLine[] = [];
  for await (const lines of pieces()) {
    held = [...held, ...lines];
    reader ??= readerFor(held);
    if (reader === undefined && held.length < guessLinesMax) continue;
    if (reader === undefined) break;
    // Not `yield*`, which waits once more for every item of a plain array.
    for (const line of held) for (const event of readLine(reader, line, bad)) yield event;
    held = [];
  }
  if (held.length === 0) return;
  throw new Error(
    `nothing in it is of a dialect that is known; it may be ${[...dialects.keys()].join(", ")}`,
  );
}

function readerFor(lines: readonly NumberedLine[]): LogReader | undefined {
  const guessed = guessDialect(textsOf(lines));
  return guessed && logReader(guessed);
}

function textsOf(lines: readonly NumberedLine[]): readonly string[] {
  return lines.flatMap((line) => ("text" in line ? [line.text] : [])).slice(0, guessLinesMax);
}

const guessLinesMax = 100;

/**
 * The dialect that reads most of these lines, as types it has names for; none where nothing does. Dialects of the log
 * come first: what another could read too says more there.
 */
function guessDialect(lines: readonly string[]): Dialect | undefined {
  const isLog = ({ cursor }: Dialect): boolean => typeof cursor === "string";
  const ranked = [...dialects.values()].sort(
    (a, b) =>
      Number(isLog(b)) - Number(isLog(a)) || Number(b.carries === "all") - Number(a.carries === "all"),
  );
  const scores = ranked.map((dialect) => ({ dialect, score: readLines(dialect, lines) }));
  const best = scores.reduce((found, one) => (one.score > found.score ? one : found));
  return best.score > 0 ? best.dialect : undefined;
}

function readLines(dialect: Dialect, lines: readonly string[]): number {
  const decoder = dialect.decoder();
  return lines.filter((data) => {
    try {
      // What says nothing new, as a message that is derived from another, is read too.
      return decoder.decode({ data }).every(({ type }) => !type.startsWith("x."));
    } catch (error) {
      if (error instanceof RunwireError) return false;
      throw error;
    }
  }).length;
}
