// What the demo reads out of a conversation: what it is to do, what it was told meanwhile, and what has come back since.

import type { ChatMessage, ModelRequest } from "../model.js";
import { planHeading } from "../plan-steps.js";
import { heard, quote } from "./quote.js";
import { itemsOf, knownIn, subjectsIn, subjectsOf } from "./subjects.js";

export interface Turn {
  readonly task: string;
  /** What was asked in the turns before, oldest first. */
  readonly before: readonly string[];
  readonly isHelper: boolean;
  /** Whether somebody redirected the run to this task. */
  readonly isRedirected: boolean;
  /** What a redirection says that is no task; null where there is none. */
  readonly instead: string | null;
  /** What was said to steer it. */
  readonly told: readonly string[];
  /** That which it has not answered yet. */
  readonly news: readonly string[];
  /** What was said and done since the task was given. */
  readonly since: readonly ChatMessage[];
  /** What it would look into where no plan says so. */
  readonly subjects: readonly string[];
  readonly plan: readonly PlanLine[];
}

/** A line of the plan, as the system's words have it: `s2. Look into uPlot`. */
export interface PlanLine {
  readonly id: string;
  readonly title: string;
  readonly subjects: readonly string[];
}

export const helperPrefix = "Find out about ";

/** The task is what was asked last, or what a redirection asks for. What was said to steer the run is none. */
export function turnOf({ messages, system }: Pick<ModelRequest, "messages" | "system">): Turn {
  const at = messages.findLastIndex(isTask);
  const asked = messages.filter(isTask).map(({ content }) => heard(content));
  const last = asked.at(-1) ?? "";
  // A helper may be told more below: what it is a part of, and what others have found.
  const task = last.startsWith(helperPrefix) ? (last.split("\n")[0] ?? "") : last;
  const given = messages[at];
  const isRedirected = given?.role === "user" && given.direction === "redirect";
  const since = messages.slice(at + 1);
  const isHelper = task.startsWith(helperPrefix);
  const before = isRedirected ? [] : asked.slice(0, -1);
  const answered = since.findLastIndex(({ role }) => role === "assistant");
  return {
    task,
    before,
    isHelper,
    isRedirected,
    instead: directionsIn(since, "redirect").at(-1) ?? null,
    told: directionsIn(since, "steer"),
    news: directionsIn(since.slice(answered + 1), "steer"),
    since,
    subjects: isHelper ? [helpedWith(task)] : subjectsOf(task, before),
    // Another task is not what the plan was for.
    plan: isRedirected ? [] : planIn(system),
  };
}

/** What a helper is to find out about. */
export function helpedWith(task: string): string {
  return quote(task.slice(helperPrefix.length), 60);
}

type UserMessage = Extract<ChatMessage, { role: "user" }>;

function isTask(message: ChatMessage): message is UserMessage {
  if (message.role !== "user" || message.direction === "steer") return false;
  return message.direction === undefined || isErrand(heard(message.content));
}

function isErrand(instruction: string): boolean {
  if (/^(?:please\s+)?(?:compare|find out|look (?:into|up)|help me choose)\b/i.test(instruction)) return true;
  return subjectsIn(instruction).length > 0 && !/\b(?:forget|stop|drop|skip|never)\b/i.test(instruction);
}

function directionsIn(messages: readonly ChatMessage[], kind: "steer" | "redirect"): readonly string[] {
  return messages.flatMap((message) =>
    message.role === "user" && message.direction === kind ? [heard(message.content)] : [],
  );
}

function planIn(system: string): readonly PlanLine[] {
  const [, plan = ""] = system.split(`${planHeading}\n`);
  return [...plan.matchAll(/^(\S+)\. (.+)$/gm)].map(([, id = "", title = ""]) => ({
    ...{ id, title },
    subjects: planned(heard(title)),
  }));
}

/** What a step of the plan is to look into. */
function planned(title: string): readonly string[] {
  if (/\b(?:not|don't|skip|without)\b/i.test(title)) return [];
  const named = /\b(?:look (?:into|up|at)|find out about|research|investigate|explore)\s+(.+?)\.?$/i.exec(
    title,
  );
  return named === null ? knownIn(title) : itemsOf(named[1] ?? "");
}

/** What a call has come to. */
export interface Result {
  readonly input: { readonly [member: string]: unknown };
  readonly ok: boolean;
  readonly output: { readonly [member: string]: unknown };
}

export function resultsOf(messages: readonly ChatMessage[], tool: string): readonly Result[] {
  const calls = messages.flatMap((message) => (message.role === "assistant" ? message.calls : []));
  return messages.flatMap((message) => {
    if (message.role !== "tool" || message.tool !== tool) return [];
    const { call_id, ok, output } = message;
    const input = calls.findLast((call) => call.call_id === call_id)?.input;
    return [{ input: (input ?? {}) as Result["input"], ok, output: (output ?? {}) as Result["output"] }];
  });
}
