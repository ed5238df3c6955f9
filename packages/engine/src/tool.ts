// What a tool is to the agent.

import type { Facts } from "@runwire/protocol";
import type { ToolSpec } from "./model.js";

export interface Tool extends ToolSpec {
  /** A read-only tool may be run again after a crash; another one never is, and may need somebody's approval. */
  readonly effect: "read-only" | "destructive";
  /** `<slug>@<version>` of the skill that brought it. */
  readonly skill_id?: string;
  /** What it is held to while it runs; only what really is enforced. */
  readonly sandbox?: SandboxProfile;
  /** Throws a ToolFailure where the input does not fit. Where it is left out, the tool says so when it is run. */
  check?(input: unknown): void;
  /** Gives its output, a JSON value. Throws a ToolFailure, or anything, where it fails; stops when the signal aborts. */
  run(input: unknown, context: ToolContext): Promise<unknown>;
}

/** What is kept from a tool, in words for those who audit. A member that is left out says nothing. */
export interface SandboxProfile {
  readonly name: string;
  readonly filesystem?: Facts;
  readonly network?: Facts;
  readonly process?: Facts;
}

export interface ToolContext {
  readonly tenant: string;
  readonly run_id: string;
  readonly call_id: string;
  readonly signal: AbortSignal;
  /** The run's own folder. No tool reads or writes files outside of it. */
  readonly workspace: string;
  /** Shows text to whoever watches, while the tool runs. */
  say(text: string): void;
  /**
   * Tells of a process that ends with the call at the latest; what is said from now on is its output. To be called
   * again with its end.
   */
  began(process: ProcessBegun): (end: ProcessEnd) => void;
}

export interface ProcessBegun {
  readonly command: string;
  /** Relative to the workspace; `.` for itself. */
  readonly cwd: string;
  /** Undefined where it could not be started. */
  readonly pid: number | undefined;
}

export type ProcessEnd =
  /** By itself, whatever it thinks of its own success. */
  | { readonly kind: "completed"; readonly exit_code: number }
  | { readonly kind: "failed"; readonly reason: "not-started" }
  | {
      readonly kind: "terminated";
      readonly signal: string | null;
      readonly reason: "timeout" | "aborted" | "signal";
    };

/** What of its sandbox a call ran against. */
export type Violation = "outside-workspace" | "link" | "private-host" | "scheme";

interface FailureOptions extends ErrorOptions {
  readonly violation?: Violation;
}

/** A failure that the model should be told of. */
export class ToolFailure extends Error {
  /** Where it was the tool's sandbox that refused. */
  readonly violation: Violation | undefined;
  constructor(
    /** What kind, for the model and for `tool.end`: `not-found`, `refused`, `invalid-input` … */
    readonly kind: string,
    message: string,
    options?: FailureOptions,
  ) {
    super(message, options);
    this.name = "ToolFailure";
    this.violation = options?.violation;
  }
}
