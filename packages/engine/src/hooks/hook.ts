// What looks at a call before its tool runs and after it has. The operator's commands and the engine's own checks are
// the same thing: each is told when it begins and how it ended, may refuse, and may fail without harm.

import type { Draft, Facts } from "@runwire/protocol";
import type { Tool } from "../tool.js";

export type HookPoint = "pre_tool_use" | "post_tool_use" | "post_tool_failure";

export interface HookCall {
  readonly point: HookPoint;
  readonly run_id: string;
  readonly call_id: string;
  readonly tool: Tool;
  readonly input: unknown;
  /** What the tool gave, at `post_tool_use`. */
  readonly output?: unknown;
  /** What it failed with, at `post_tool_failure`. */
  readonly error?: Facts;
  readonly workspace: string;
}

export type HookAnswer =
  | {
      readonly kind: "go";
      /** Takes the place of the tool's input, before it runs. */
      readonly input?: unknown;
      /** More to tell of it with its end … */
      readonly facts?: Facts;
      /** … and of the call before. */
      readonly told?: readonly Draft[];
    }
  | {
      readonly kind: "refuse";
      readonly why: string;
      /** Of the failure that the model is told of; `denied` if not given. */
      readonly failure?: string;
    };

export interface Hook {
  /** No two of an engine have the same. */
  readonly name: string;
  readonly points: readonly HookPoint[];
  /** Whether a call is refused where this fails. */
  readonly required: boolean;
  /** One that takes its time is told before it begins; the others together with what they belong to. */
  readonly takesTime: boolean;
  appliesTo(tool: Tool): boolean;
  /** Throws a HookFailure, or anything, where it fails; stops when the signal aborts. */
  run(call: HookCall, signal: AbortSignal): Promise<HookAnswer>;
}

/** It could not say anything about the call. */
export class HookFailure extends Error {
  constructor(
    readonly reason: "timeout" | "exit" | "start" | "output" | "input" | "lost",
    message: string,
    /** More to tell. */
    readonly facts: Facts = {},
  ) {
    super(message);
    this.name = "HookFailure";
  }
}
