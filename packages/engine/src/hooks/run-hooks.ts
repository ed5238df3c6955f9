// The hooks of one point, one after the other. The first refusal stands. What fails is told, and passed over unless
// the hook is required.

import { type Draft, type Facts, messageOf } from "@runwire/protocol";
import { factOf, type Telling } from "../telling.js";
import { unfitForLog } from "../unfit.js";
import { type Hook, type HookCall, HookFailure, type HookPoint } from "./hook.js";

export interface Hooked {
  readonly input: unknown;
  readonly refusal: { readonly kind: string; readonly why: string } | null;
}

interface Around {
  readonly told: Telling;
  readonly monotonic: () => number;
  readonly signal: AbortSignal;
}

/** Where the signal aborts meanwhile, what is given back means nothing. */
export async function runHooks(hooks: readonly Hook[], call: HookCall, around: Around): Promise<Hooked> {
  const { told, monotonic, signal } = around;
  let { input } = call;
  for (const hook of hooks) {
    if (!hook.points.includes(call.point) || !hook.appliesTo(call.tool) || signal.aborted) continue;
    const fact = factsOf(hook, call);
    const started = fact("hook.started", {});
    if (hook.takesTime) await told.write(started);
    else told.add(started);
    const beganMs = monotonic();
    const duration = (): Facts => ({ duration_ms: Math.round(monotonic() - beganMs) });
    try {
      const answer = await hook.run({ ...call, input }, signal);
      if (answer.kind === "refuse") {
        told.add(fact("hook.completed", { outcome: "refused", reason: answer.why, ...duration() }));
        return { input, refusal: { kind: answer.failure ?? "denied", why: answer.why } };
      }
      const isChanged = call.point === "pre_tool_use" && answer.input !== undefined;
      if (isChanged) input = fitting(call, answer.input);
      const outcome = isChanged ? "changed" : "passed";
      const completed = fact("hook.completed", { outcome, ...answer.facts, ...duration() });
      told.add(...(answer.told ?? []), completed);
    } catch (error) {
      if (signal.aborted) break;
      const { required } = hook;
      told.add(fact("hook.failed", { ...failureFacts(error), required, ...duration() }));
      if (required)
        return { input, refusal: { kind: "denied", why: `the hook ${hook.name} failed, and is required` } };
    }
  }
  return { input, refusal: null };
}

/** The same again after a crash. */
function hookIdOf(call_id: string, point: HookPoint, name: string): string {
  return `${call_id}:${point}:${name}`;
}

function factsOf(
  { name }: Hook,
  { call_id, point, tool }: HookCall,
): (type: `hook.${string}`, more: Facts) => Draft {
  const of = { hook_id: hookIdOf(call_id, point, name), point, name, toolName: tool.name };
  return (type, more) => factOf(call_id, type, { ...of, ...more });
}

function fitting({ tool }: HookCall, input: unknown): unknown {
  const unfit = unfitForLog(input);
  if (unfit !== undefined) throw new HookFailure("input", `what it gave ${unfit}`);
  try {
    tool.check?.(input);
    return input;
  } catch (error) {
    throw new HookFailure("input", `what it gave does not fit: ${(error as Error).message}`);
  }
}

function failureFacts(error: unknown): Facts {
  const message = messageOf(error);
  return error instanceof HookFailure
    ? { reason: error.reason, message, ...error.facts }
    : { reason: "failed", message };
}
