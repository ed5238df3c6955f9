// What a model is to the agent: it is handed a conversation, and answers in parts. Providers and the demo are behind
// this page; nothing else of the engine knows which one it speaks to.

import type { ConversationCall, ConversationMessage } from "@runwire/protocol";

export interface Model {
  /** As the provider calls it. */
  readonly name: string;
  readonly provider: string;
  /** Whether it goes on from the beginning of an answer that it is handed as its own. */
  readonly takesPrefill: boolean;
  /** One answer. Throws a ModelFailure; ends after `finished`. Stops at once when the signal aborts. */
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelPart>;
}

export interface ModelRequest {
  readonly system: string;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolSpec[];
  /** What it has said of this answer already, before it was cut off; "" for a new one. */
  readonly partial: string;
  /** Where it is asked for something short beside the answer, which is not worth long thought. */
  readonly aside?: "title" | "suggestions";
  /** Where it is asked for a step of a strategy, which is no answer and is not shown as one. */
  readonly purpose?: Purpose;
}

export type Purpose = "tot.expand" | "tot.evaluate" | "got.plan" | "got.expand";

export type ChatMessage =
  | {
      readonly role: "user";
      readonly content: string;
      /** Said while the run was going: to be kept in mind, or to be done instead. Absent where it was asked. */
      readonly direction?: "steer" | "redirect";
    }
  | {
      readonly role: "assistant";
      readonly content: string;
      readonly calls: readonly Call[];
      /** As it came with `finished`, and the model that it came from. */
      readonly carry?: unknown;
      readonly by?: Pick<Model, "name" | "provider">;
    }
  | Extract<ConversationMessage, { readonly role: "tool" }>;

export interface Call extends ConversationCall {
  /** The step of the plan that it is for, as the model says. */
  readonly plan_step?: string;
}

export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  /** JSON Schema. */
  readonly input_schema: { readonly [member: string]: unknown };
}

export type ModelPart =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "reasoning"; readonly text: string }
  /** Arguments of a call as they are written. */
  | { readonly kind: "args"; readonly call_id: string; readonly tool: string; readonly text: string }
  | ({ readonly kind: "call" } & Call)
  /** What is used up so far, as far as the provider tells before the end; each replaces the one before. */
  | { readonly kind: "used"; readonly usage: ModelUsage }
  | {
      readonly kind: "finished";
      readonly reason: "stop" | "calls" | "length" | "filtered" | "other";
      readonly usage: ModelUsage;
      /** The provider's own ids. */
      readonly refs: { readonly [name: string]: string };
      /**
       * What the provider wants back with this answer when its calls have been made, such as reasoning that it signed:
       * a JSON value that means nothing to anybody else. Absent where it wants nothing.
       */
      readonly carry?: unknown;
    };

/** Cached tokens are among the input's, reasoning tokens among the output's. */
export interface ModelUsage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly reasoning_tokens: number;
  readonly cached_tokens: number;
}

export type FailureKind =
  /** Too many requests; the same may succeed later. */
  | "rate-limit"
  /** The provider is overloaded, or answers 5xx. */
  | "overloaded"
  /** No first part, or no end, within its time. */
  | "timeout"
  /** The answer broke off, or could not be read. */
  | "broken"
  /** The key is wrong or missing. */
  | "unauthorized"
  /** The provider refuses this request, and will again. */
  | "refused";

export class ModelFailure extends Error {
  /** What was used up before it failed, as far as the provider told. */
  readonly usage: ModelUsage | undefined;

  constructor(
    readonly kind: FailureKind,
    message: string,
    /** When the provider says to come back; 0 where it does not. */
    readonly retryMs = 0,
    options?: ErrorOptions & { readonly usage?: ModelUsage | undefined },
  ) {
    super(message, options);
    this.name = "ModelFailure";
    this.usage = options?.usage;
  }
}
