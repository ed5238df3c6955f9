// What was decided about a call before anything of it ran, and by what: a fact, also where nobody had to be asked.

import type { Approvals, Draft, Facts } from "@runwire/protocol";
import { factOf } from "./telling.js";
import type { Tool } from "./tool.js";

export interface Evaluated {
  readonly policy: "allowed" | "ask" | "denied";
  readonly reason: PermissionReason;
  /** The answer that stands, where there is one. */
  readonly approved?: Facts;
}

export type PermissionReason =
  /** The run does not ask for approvals. */
  | "approvals-never"
  /** It asks before destructive tools, and this is none. */
  | "read-only"
  /** To ask is not to act. */
  | "asks-a-person"
  /** Somebody has approved the tool for the session, or for good. */
  | "standing-allowance"
  /** It asks before destructive tools, and this is one. */
  | "destructive"
  /** It asks before every tool. */
  | "approvals-always"
  /** The tool is not among those that the run was given. */
  | "tool-list";

export function permissionFact(
  call_id: string,
  { name, effect }: Pick<Tool, "name" | "effect">,
  approvals: Approvals,
  { policy, reason, approved }: Evaluated,
): Draft {
  return factOf(call_id, "permission.evaluated", {
    toolName: name,
    effect,
    policy,
    reason,
    approvals,
    ...(approved === undefined ? {} : { approved }),
  });
}
