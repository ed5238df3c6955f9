// What the agent asks people. A request is an event; its answer is another, whoever gives it, however much later, and
// whatever happened to the server in between.

import type { Facts } from "@runwire/protocol";
import { limits } from "./limits.js";
import type { Loop } from "./loop.js";
import { type Evaluated, permissionFact } from "./permission.js";
import type { Telling } from "./telling.js";
import { type Tool, ToolFailure } from "./tool.js";
import { checkedTool } from "./tools/input.js";
import type { Ask, CallWork, Work } from "./work.js";

interface Question {
  readonly question: string;
  readonly choices?: readonly string[];
}

export const clarifyTool: Tool = checkedTool<Question>({
  name: "clarify",
  description: "Ask the person one question, where going on without the answer would be a guess.",
  effect: "read-only",
  input_schema: {
    type: "object",
    required: ["question"],
    additionalProperties: false,
    properties: {
      question: { type: "string", minLength: 1 },
      choices: { type: "array", items: { type: "string" }, maxItems: 10 },
    },
  },
  run() {
    throw new ToolFailure("failed", "clarify is asked by the agent itself");
  },
});

/** The answer; where none came in time, that the agent should use its own judgement. */
export async function clarify(loop: Loop, call: CallWork, signal: AbortSignal): Promise<unknown> {
  clarifyTool.check?.(call.input);
  const { question, choices = [] } = call.input as Question;
  const { call_id } = call;
  const resolved = await answerTo(loop, call, "question", signal, (clarify_id, expires_at) =>
    loop.log.write({
      type: "clarify.requested",
      payload: { clarify_id, call_id, question, choices, expires_at },
    }),
  );
  // Not answered, but no longer asked by this loop: the next one, if there is one, waits on.
  signal.throwIfAborted();
  if (resolved.outcome === "answered") return { answer: resolved.answer };
  return { answer: null, note: "Nobody answered in time. Use your best judgement." };
}

export type Verdict =
  | {
      readonly kind: "go";
      readonly input: unknown;
      /** Whose word it was, where one was needed: for those who wonder why the tool ran. */
      readonly approved?: Facts;
    }
  | { readonly kind: "denied"; readonly why: string };

/** Waits for somebody's word where the tool needs it, and none that was given before stands. Silence is a no. */
export async function approve(
  loop: Loop,
  call: CallWork,
  tool: Tool,
  signal: AbortSignal,
  told: Telling,
): Promise<Verdict> {
  const { call_id, input, approval } = call;
  const { run, given } = loop;
  const { approvals } = given;
  // What was asked before a crash was evaluated then.
  if (approval === null) {
    const evaluated = await evaluate(loop, tool);
    told.add(permissionFact(call_id, tool, approvals, evaluated));
    const { policy, approved } = evaluated;
    if (policy !== "ask") return { kind: "go", input, ...(approved === undefined ? {} : { approved }) };
  }
  const resolved = await answerTo(loop, call, "approval", signal, (approval_id, expires_at) =>
    told.write({
      type: "approval.requested",
      payload: { approval_id, call_id, tool: tool.name, input, effect: tool.effect, expires_at },
    }),
  );
  const { decision, outcome, reason, approval_id } = resolved;
  if (decision !== "deny") {
    const approved = { decision, approval_id, run_id: run.run_id };
    return { kind: "go", input: resolved.input === undefined ? input : resolved.input, approved };
  }
  const why = outcome === "answered" ? "denied" : "not approved in time";
  return { kind: "denied", why: typeof reason === "string" ? `${why}: ${reason}` : why };
}

async function evaluate(loop: Loop, tool: Tool): Promise<Evaluated> {
  const { approvals } = loop.given;
  if (tool.name === clarifyTool.name) return { policy: "allowed", reason: "asks-a-person" };
  if (approvals === "never") return { policy: "allowed", reason: "approvals-never" };
  if (approvals === "destructive" && tool.effect === "read-only")
    return { policy: "allowed", reason: "read-only" };
  const approved = await allowanceFor(loop, tool);
  if (approved !== undefined) return { policy: "allowed", reason: "standing-allowance", approved };
  return { policy: "ask", reason: approvals === "always" ? "approvals-always" : "destructive" };
}

/** What was approved for the tool, in this session or for good. */
async function allowanceFor({ host, run, given }: Loop, { name }: Tool): Promise<Facts | undefined> {
  const allowed = await host.allowances(run.tenant, given.session_id);
  const found = allowed.find(({ tool }) => tool === name);
  if (found === undefined) return undefined;
  const { session_id, run_id, approval_id } = found;
  return { decision: session_id === null ? "always" : "session", approval_id, run_id };
}

/** Asks unless it was asked before, and waits for as long as the answer matters. */
async function answerTo(
  { log, newId, host }: Loop,
  { call_id }: CallWork,
  kind: "approval" | "question",
  signal: AbortSignal,
  request: (id: string, expires_at: string) => Promise<void>,
): Promise<Facts> {
  const askOf = (work: Work): Ask | null =>
    work.calls.find((call) => call.call_id === call_id)?.[kind] ?? null;
  if (askOf(log.work) === null) {
    const waitMs = kind === "approval" ? limits.approvalMs : limits.questionMs;
    const expires_at = new Date(host.clock.now() + waitMs).toISOString();
    await request(newId(kind === "approval" ? "appr" : "clar"), expires_at);
  }
  const work = await log.until((now) => signal.aborted || askOf(now)?.resolved != null);
  return askOf(work)?.resolved ?? { outcome: "closed", decision: "deny" };
}
