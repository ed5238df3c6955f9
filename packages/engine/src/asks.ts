// What the agent asks people. A request is an event; its answer is another, whoever gives it, however much later, and
// whatever happened to the server in between.

import type { Draft, Facts } from "@runwire/protocol";
import { limits } from "./limits.js";
import type { Loop } from "./loop.js";
import { type Tool, ToolFailure } from "./tool.js";
import type { Ask, CallWork, Work } from "./work.js";

export const clarifyTool: Tool = {
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
};

/** The answer; where none came in time, that the agent should use its own judgement. */
export async function clarify(loop: Loop, call: CallWork): Promise<unknown> {
  const { question, choices } = call.input as { question: string; choices?: readonly string[] };
  const { call_id } = call;
  const resolved = await answerTo(loop, call, "question", (clarify_id, expires_at) => ({
    type: "clarify.requested",
    payload: { clarify_id, call_id, question, choices: choices ?? [], expires_at },
  }));
  if (resolved.outcome === "answered") return { answer: resolved.answer };
  return { answer: null, note: "Nobody answered in time. Use your best judgement." };
}

export type Verdict =
  | { readonly kind: "go"; readonly input: unknown }
  | { readonly kind: "denied"; readonly why: string };

/** Waits for somebody's word where the tool needs it. Silence is a no. */
export async function approve(loop: Loop, call: CallWork, tool: Tool): Promise<Verdict> {
  const { call_id, input } = call;
  if (!needsApproval(loop.log.work, tool)) return { kind: "go", input };
  const resolved = await answerTo(loop, call, "approval", (approval_id, expires_at) => ({
    type: "approval.requested",
    payload: { approval_id, call_id, tool: tool.name, input, effect: tool.effect, expires_at },
  }));
  const { decision, outcome, reason } = resolved;
  if (outcome === "answered" && decision !== "deny")
    return { kind: "go", input: resolved.input === undefined ? input : resolved.input };
  const why = outcome === "answered" ? "denied" : "not approved in time";
  return { kind: "denied", why: typeof reason === "string" ? `${why}: ${reason}` : why };
}

function needsApproval({ asked, allowed }: Work, tool: Tool): boolean {
  if (asked.approvals !== "always" && !(asked.approvals === "destructive" && tool.effect === "destructive"))
    return false;
  return !allowed.includes(tool.name);
}

/** Asks unless it was asked before, and waits. */
async function answerTo(
  { log, newId, host }: Loop,
  { call_id }: CallWork,
  kind: "approval" | "question",
  request: (id: string, expires_at: string) => Draft,
): Promise<Facts> {
  const askOf = (work: Work): Ask | null =>
    work.calls.find((call) => call.call_id === call_id)?.[kind] ?? null;
  if (askOf(log.work) === null) {
    const waitMs = kind === "approval" ? limits.approvalMs : limits.questionMs;
    const expires_at = new Date(host.clock.now() + waitMs).toISOString();
    await log.write(request(newId(kind === "approval" ? "appr" : "clar"), expires_at));
  }
  const work = await log.until((now) => askOf(now)?.resolved != null);
  return askOf(work)?.resolved ?? { outcome: "closed", decision: "deny" };
}
