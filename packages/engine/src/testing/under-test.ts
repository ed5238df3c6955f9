// The three providers, opened on a fake one, and what an answer comes to.

import type { Call, Model, ModelPart, ModelRequest } from "../model.js";
import { anthropicModel, localModel, type Opening, openaiModel } from "../providers/known.js";

/** What no message may ever show. */
export const secretKey = "key-that-nobody-may-see-0123456789";

export const kinds = ["anthropic with prefill", "anthropic", "openai", "local"] as const;
export type Kind = (typeof kinds)[number];

export function modelOf(kind: Kind, baseUrl: string, rest: Pick<Opening, "clock" | "limits"> = {}): Model {
  const opening = { key: secretKey, baseUrl, ...rest };
  switch (kind) {
    case "anthropic with prefill":
      return anthropicModel({ ...opening, model: "claude-haiku-4-5" });
    case "anthropic":
      return anthropicModel({ ...opening, model: "claude-sonnet-5-5" });
    case "openai":
      return openaiModel({ ...opening, model: "gpt-6.1-sol" });
    case "local":
      return localModel({ ...opening, model: "llama" });
  }
}

export const plainRequest: ModelRequest = {
  system: "Be brief.",
  messages: [{ role: "user", content: "Hello?" }],
  tools: [{ name: "web.fetch", description: "Fetches a page.", input_schema: { type: "object" } }],
  partial: "",
};

export interface Heard {
  readonly text: string;
  readonly reasoning: string;
  /** Of every call, what was written of it before it was whole. */
  readonly args: { readonly [call_id: string]: string };
  readonly calls: readonly Call[];
  readonly finished: Extract<ModelPart, { kind: "finished" }> | undefined;
}

/** Joins what comes. Where it fails, `sofar` has been told what came before. */
export async function hearAll(
  parts: AsyncIterable<ModelPart>,
  sofar?: (heard: Heard) => void,
): Promise<Heard> {
  let heard: Heard = { text: "", reasoning: "", args: {}, calls: [], finished: undefined };
  for await (const part of parts) {
    heard = add(heard, part);
    sofar?.(heard);
  }
  return heard;
}

function add(heard: Heard, part: ModelPart): Heard {
  switch (part.kind) {
    case "text":
      return { ...heard, text: heard.text + part.text };
    case "reasoning":
      return { ...heard, reasoning: heard.reasoning + part.text };
    case "args":
      return {
        ...heard,
        args: { ...heard.args, [part.call_id]: (heard.args[part.call_id] ?? "") + part.text },
      };
    case "call": {
      const { call_id, tool, input } = part;
      return { ...heard, calls: [...heard.calls, { call_id, tool, input }] };
    }
    case "used":
      return heard;
    case "finished":
      return { ...heard, finished: part };
  }
}

export const never: AbortSignal = new AbortController().signal;
