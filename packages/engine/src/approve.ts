// Whether a call may run: by what the run was given, by what was approved before, or by asking a person.

import type { Facts } from "@runwire/protocol";
import { answerTo } from "./asks.js";
import { type CallWork, isRedacted } from "./call-work.js";
import { clarifyTool } from "./clarify.js";
import type { Loop } from "./loop.js";
import { type Evaluated, permissionFact } from "./permission.js";
import type { Telling } from "./telling.js";
import type { Tool } from "./tool.js";

export type Verdict =
  | {
      readonly kind: "go";
      readonly input: unknown;
      /** Whose word it was, where one was needed: for those who wonder why the tool ran. */
      readonly approved?: Facts;
    }
  | { readonly kind: "denied"; readonly why: string };

/** What runs is what the log says: an input of a model's, or a person's, of which something was redacted is none. */
export const notKept = "this server must not store some members of its input";

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
  // Whatever is not a yes is a no.
  if (decision === "once" || decision === "session" || decision === "always") {
    const approved = { decision, approval_id, run_id: run.run_id };
    if (resolved.input === undefined) return { kind: "go", input, approved };
    if (isRedacted(resolved)) return { kind: "denied", why: notKept };
    return { kind: "go", input: resolved.input, approved };
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
