// What a tool is held to, told when it starts; and that it ran against it, told with its end.

import type { Draft } from "@runwire/protocol";
import { factOf } from "./telling.js";
import { type Tool, ToolFailure } from "./tool.js";

export function appliedSandbox(call_id: string, { name, sandbox }: Tool): readonly Draft[] {
  if (sandbox === undefined) return [];
  return [factOf(call_id, "sandbox.applied", { toolName: name, profile: sandbox })];
}

export function violationIn(call_id: string, { name, sandbox }: Tool, error: unknown): readonly Draft[] {
  if (!(error instanceof ToolFailure) || error.violation === undefined) return [];
  const profile = sandbox === undefined ? {} : { profile: sandbox.name };
  const { violation, message } = error;
  return [factOf(call_id, "sandbox.violation", { toolName: name, ...profile, violation, message })];
}
