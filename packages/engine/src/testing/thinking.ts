// A model that answers each ask of a strategy as a test says, and everything else in one line. It remembers nothing, so
// the same is said to the same conversation; what it was asked for is counted.

import { type Model, ModelFailure, type ModelRequest } from "../model.js";

export interface ThinkingModel extends Model {
  /** The purposes of whole answers to strategies, in their order. */
  readonly asked: string[];
}

export function thinkingModel(
  answerTo: (wish: string, request: ModelRequest & { purpose: string }) => string,
): ThinkingModel {
  const asked: string[] = [];
  return {
    name: "thinking",
    provider: "test",
    takesPrefill: true,
    asked,
    async *stream(request) {
      const { purpose } = request;
      const text =
        purpose === undefined ? plainly(request) : answerTo(lastSaid(request), { ...request, purpose });
      if (purpose !== undefined) asked.push(purpose);
      const said = text.slice(request.partial.length);
      if (said !== "") yield { kind: "text", text: said };
      const usage = { input_tokens: 1, output_tokens: 1, reasoning_tokens: 0, cached_tokens: 0 };
      yield { kind: "finished", reason: "stop", usage, refs: {} };
    },
  };
}

/** Whether it does the part, or fails at it, is said in the part. */
function plainly(request: ModelRequest): string {
  if (request.aside !== undefined) return "Aside";
  const task = lastSaid(request);
  if (task.startsWith("FAIL")) throw new ModelFailure("refused", "no luck");
  // What it was guided by, so that a test sees it in the end.
  return `Done: ${task}\n${request.system}`;
}

export function lastSaid({ messages }: ModelRequest): string {
  const last = messages.at(-1);
  return last?.role === "user" ? last.content : "";
}

/** The same number for the same text, from 0 to 2³² − 1. */
export function hashOf(text: string): number {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619) >>> 0;
  return hash >>> 0;
}
