// A model that does what it is told: the last thing a person said is its script, answer by answer. It remembers nothing,
// so it goes on after a crash like any other; and when the script is over it says what it has seen.

import { type Event, type Facts, is } from "@runwire/protocol";
import { allEvents, startRun } from "./calls.js";
import { openReading, type Reading, readAll, streamPath } from "./readers.js";

export interface Line {
  readonly text?: string;
  readonly calls?: readonly { readonly tool: string; readonly input: unknown }[];
}

export interface Message {
  readonly role: string;
  readonly content?: unknown;
  readonly tool?: string;
  readonly ok?: boolean;
  readonly output?: unknown;
}

interface Request {
  readonly messages: readonly Message[];
  readonly tools: readonly { readonly name: string }[];
}

/** What it has seen, as its last words tell. */
export interface Seen {
  /** The tools it may use. */
  readonly tools: readonly string[];
  readonly results: readonly { readonly tool: string; readonly ok: boolean; readonly output: Facts }[];
}

export const script = (...lines: readonly Line[]): string => JSON.stringify(lines);

/** A script of one call, and what it came to. */
export const calling = (tool: string, input: unknown = {}): string => script({ calls: [{ tool, input }] });

export const spawning = (...prompts: readonly string[]): Line => ({
  calls: prompts.map((prompt) => ({ tool: "spawn", input: { prompt } })),
});

export const scriptedModel = {
  name: "scripted",
  provider: "test",
  takesPrefill: true,
  async *stream(request: Request, _signal: AbortSignal) {
    const line = lineFor(request);
    if (line.text !== undefined) yield { kind: "text" as const, text: line.text };
    const calls = line.calls ?? [];
    for (const [i, { tool, input }] of calls.entries())
      yield { kind: "call" as const, call_id: `scripted-${i}`, tool, input };
    const usage = { input_tokens: 1, output_tokens: 1, reasoning_tokens: 0, cached_tokens: 0 };
    const reason: "calls" | "stop" = calls.length > 0 ? "calls" : "stop";
    yield { kind: "finished" as const, reason, usage, refs: {} };
  },
};

/** What comes next. */
export function lineFor({ messages, tools }: Request): Line {
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const since = messages.slice(asked + 1);
  const lines = linesOf(messages[asked]?.content);
  const next = lines[since.filter(({ role }) => role === "assistant").length];
  if (next !== undefined) return next;
  const results = since
    .filter(({ role }) => role === "tool")
    .map(({ tool = "", ok = false, output }) => ({ tool, ok, output: output as Facts }));
  return { text: JSON.stringify({ tools: tools.map(({ name }) => name), results } satisfies Seen) };
}

function linesOf(content: unknown): readonly Line[] {
  try {
    const lines: unknown = JSON.parse(String(content));
    return Array.isArray(lines) ? (lines as readonly Line[]) : [];
  } catch {
    // Somebody said something that is no script: then there is nothing to do.
    return [];
  }
}

export function start(url: string, prompt: string, asked: Facts = {}): Promise<string> {
  return startRun(url, { prompt, ...asked });
}

/** Follows the run to its end; all of its events, its children's among them. */
export async function ended(url: string, run_id: string): Promise<readonly Event[]> {
  await readAll("sse", url, streamPath({ run_id }));
  return allEvents(url, run_id);
}

export function watch(url: string, run_id: string): Promise<Reading> {
  return openReading("sse", url, streamPath({ run_id, dialect: "runwire" }));
}

/** The payloads of the run's first events of a type, and of its children's, once there are so many. */
export async function waitFor(
  url: string,
  run_id: string,
  type: Event["type"],
  count = 1,
): Promise<readonly (Facts & { readonly by: string })[]> {
  const reading = await watch(url, run_id);
  const found = (): readonly Event[] => reading.events.filter((e) => e.type === type);
  await reading.until(() => found().length >= count);
  reading.stop();
  return found().map(({ payload, child_id }) => ({ ...payload, by: child_id ?? run_id }));
}

/** What the run's own model had seen in the end. */
export function seenBy(events: readonly Event[]): Seen {
  const settled = events.findLast((e) => e.child_id === null && is(e, "message.settled"));
  return JSON.parse(String((settled?.payload as Facts | undefined)?.text)) as Seen;
}

export function ofType(events: readonly Event[], type: Event["type"]): readonly Facts[] {
  return events.filter((e) => e.type === type).map(({ payload }) => payload);
}

export function lastState(events: readonly Event[]): unknown {
  return events.findLast((e) => e.type === "run.lifecycle" && e.child_id === null)?.payload;
}
