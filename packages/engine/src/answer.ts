// One answer of the model, from nothing or from where it was cut off. Text and reasoning are written as they come; the
// calls only together with the end of the answer, so that after a crash there are all of them or none.

import { type Draft, type Facts, isObject, type Payloads } from "@runwire/protocol";
import { keepToBudget } from "./budget.js";
import { unreadable } from "./call-work.js";
import { systemClock } from "./clock.js";
import { limits } from "./limits.js";
import type { Loop } from "./loop.js";
import {
  type Call,
  type Model,
  ModelFailure,
  type ModelPart,
  type ModelRequest,
  type ModelUsage,
} from "./model.js";
import { offered, planHeading, withoutStep } from "./plan-steps.js";
import { isFree } from "./prices.js";
import { type FailedTry, streamWithRetries } from "./retry.js";
import { handOn } from "./steers.js";
import { boundary } from "./steps.js";
import { purposeFacts } from "./strategies/purposes.js";
import { guidanceOf } from "./strategies/strategy.js";
import { countUsed, used, usedInPart } from "./usage.js";
import type { Work } from "./work.js";

export async function answer(loop: Loop, work: Work): Promise<void> {
  const { log } = loop;
  // At a tool's end, what people have said since is handed on with the results; after a strategy, with what it came to.
  const last = work.messages.at(-1)?.role;
  const isBetween = last === "tool" || (last === "user" && work.strategy !== null);
  const steers = work.answer === null && isBetween ? work.steers : [];
  if (steers.length > 0) return handOn(log, steers);
  if (work.steps >= limits.stepsMax) throw new Error(`no answer after ${limits.stepsMax} steps`);
  const said = await ask(loop, {
    system: systemText(work),
    messages: work.messages,
    tools: offered(loop.box.specs, work.plan),
    partial: work.answer?.text ?? "",
  });
  if (said === undefined) return;
  const { finished } = said;
  const calls = said.calls.map((call) => withoutStep(call, loop.box.specs, work.plan));
  const isFanOut = calls.some(({ tool }) => tool === "spawn");
  await log.write(
    ...calls.map((call): Draft => ({ type: "tool.call", payload: storable(call, loop.host) })),
    ...completed(loop, finished),
    ...(isFanOut ? [await boundary(loop, "fan-out")] : []),
  );
}

/** An input that could not be read is a text, in which nothing is found that must not be stored. */
function storable(call: Call, { redacts }: Loop["host"]): Payloads["tool.call"] {
  if (!redacts || isObject(call.input)) return { ...call };
  return { ...call, input: unreadable, redacted: ["/input"] };
}

interface Said {
  readonly calls: readonly Call[];
  /** Of what was asked for a purpose: it is told when its meaning is known, and not as it comes. */
  readonly text: string;
  readonly finished: Extract<ModelPart, { kind: "finished" }>;
}

/** Undefined where somebody interrupted: what was said is in the log, and the next round looks there. */
export async function ask(loop: Loop, request: ModelRequest): Promise<Said | undefined> {
  const { log, model, newId } = loop;
  const signal = loop.talking();
  const { name, provider } = model;
  await keepToBudget(loop);
  await log.write(...(log.work.unpaid === null ? [] : [usedInPart(log.work.unpaid, undefined)]), {
    type: "model.requested",
    payload: { model: name, provider, ...(isFree(model) ? { free: true } : {}), ...purposeFacts(request) },
  });
  const calls: Call[] = [];
  const { node } = purposeFacts(request);
  let text = "";
  const ids = new Map<string, string>();
  const idOf = (given: string): string => {
    const known = ids.get(given) ?? newId("call");
    ids.set(given, known);
    return known;
  };
  // Of the try that is under way; null before it begins.
  let usage: ModelUsage | undefined | null = null;
  try {
    const tries = {
      signal,
      clock: systemClock,
      random: Math.random,
      onFailed: async (failed: FailedTry) => {
        usage = null;
        await told(loop, failed);
      },
    };
    for await (const part of streamWithRetries(model, ownCarries(request, model), tries)) {
      usage ??= undefined;
      switch (part.kind) {
        case "used":
          usage = part.usage;
          break;
        case "text":
          if (request.purpose !== undefined) text = (text + part.text).slice(0, limits.strategyCharsMax);
          else await log.write({ type: "text.delta", payload: { text: part.text } });
          break;
        case "reasoning":
          await log.write({ type: "reasoning.delta", payload: { text: part.text, ...(node && { node }) } });
          break;
        case "args": {
          const { tool, text } = part;
          // In a text nothing is found that must not be stored; the call itself has all of it.
          if (loop.host.redacts) break;
          await log.write({ type: "tool.args.delta", payload: { call_id: idOf(part.call_id), tool, text } });
          break;
        }
        case "call":
          calls.push({ call_id: idOf(part.call_id), tool: part.tool, input: part.input });
          break;
        case "finished":
          return { calls, text, finished: part };
      }
      if (signal.aborted) return interrupted(loop, usage);
    }
  } catch (error) {
    if (signal.aborted) return interrupted(loop, usage);
    if (error instanceof ModelFailure) return rerouted(loop, error);
    throw error;
  }
  return interrupted(loop, usage);
}

/** What one model wants back means nothing to another, nor to one of the same name elsewhere. */
function ownCarries(request: ModelRequest, { name, provider }: Model): ModelRequest {
  const messages = request.messages.map((message) => {
    if (message.role !== "assistant" || message.carry === undefined) return message;
    if (message.by?.name === name && message.by.provider === provider) return message;
    const { carry: _, ...others } = message;
    return others;
  });
  return { ...request, messages };
}

/** The model is given up on: another goes on in the next round, from what was said, or the run ends. */
async function rerouted({ log, model, routing }: Loop, failure: ModelFailure): Promise<undefined> {
  const { kind, message } = failure;
  const next = routing.fallback(log.work.course, { kind, reason: message });
  if (next !== null) {
    await log.write(next);
    return;
  }
  const payload = { model: model.name, provider: model.provider, kind, reason: message };
  await log.write({ type: "routing.not_possible", payload });
  throw failure;
}

/** Somebody pays for the part of an answer that was given, too. */
async function interrupted({ log, model }: Loop, usage: ModelUsage | undefined | null): Promise<undefined> {
  if (usage !== null) await countUsed(log, [usedInPart(model, usage)]);
}

export function completed(
  { model }: Loop,
  { reason, usage, refs, carry }: Said["finished"],
  more: Facts = {},
): readonly Draft[] {
  const finish: Facts = {
    model: model.name,
    finish_reason: reason,
    usage,
    refs,
    ...(carry === undefined ? {} : { carry }),
    ...more,
  };
  return [{ type: "model.completed", payload: finish }, used(model, usage)];
}

/** A try that failed is a fact of the run, as are what it used up and how long it is until the next. */
async function told({ log, model }: Loop, failed: FailedTry): Promise<void> {
  const { failure, try: tried, waitMs, hadBegun } = failed;
  const { kind, message, usage, retryMs } = failure;
  const facts: Facts = {
    model: model.name,
    provider: model.provider,
    kind,
    message,
    try: tried,
    ...(waitMs === null ? {} : { wait_ms: waitMs }),
    // When the provider says to come back.
    ...(retryMs === 0 ? {} : { retry_after_ms: retryMs }),
  };
  const hit: Draft[] = kind === "rate-limit" ? [{ type: "rate_limit.hit", payload: facts } as Draft] : [];
  const spent = usage !== undefined || hadBegun ? [usedInPart(model, usage)] : [];
  await log.write({ type: "model.failed", payload: facts }, ...hit, ...spent);
}

function systemText({ plan, strategy }: Work): string {
  const task = "You work for a person who watches. Use tools where they help. Answer briefly.";
  const parts = [task, strategy === null ? "" : guidanceOf(strategy)].filter((part) => part !== "");
  if (plan === null) return parts.join("\n\n");
  const steps = plan.steps.map(({ id, title }) => `${id}. ${title}`);
  return [...parts, `${planHeading}\n${steps.join("\n")}`, "Say with each call which step it is for."].join(
    "\n\n",
  );
}
