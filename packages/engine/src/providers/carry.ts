// Providers that think before they call a tool want their thoughts back with the tool's result, signed, unchanged and
// in their place among the text and the calls; some want them though nothing is signed. An answer's carry is that order:
// the reasoning itself, and for text and calls only where they stood, since the log has them already.

import type { LanguageModelV3Message } from "@ai-sdk/provider";
import type { Call } from "../model.js";

type Content = Extract<LanguageModelV3Message, { role: "assistant" }>["content"];
type Options = NonNullable<Content[number]["providerOptions"]>;

export type CarryBlock =
  | { readonly reasoning: string; readonly options: Options }
  /** So many characters of the text. */
  | { readonly text: number }
  /** With options, where the provider signed the call itself. */
  | { readonly call: true; readonly options?: Options };

/** Undefined where there is nothing that the provider would miss. */
export function carryOf(blocks: readonly CarryBlock[]): readonly CarryBlock[] | undefined {
  return blocks.some((block) => "reasoning" in block || "options" in block) ? blocks : undefined;
}

/** The answer as it was given; undefined where the carry is not of this answer. */
export function withCarry(
  carry: unknown,
  text: string,
  calls: readonly Call[],
  partOf: (call: Call) => Content[number],
): Content | undefined {
  if (!isCarry(carry)) return undefined;
  const textChars = carry.reduce((sum, block) => sum + ("text" in block ? block.text : 0), 0);
  if (textChars !== text.length || carry.filter((block) => "call" in block).length !== calls.length)
    return undefined;
  let at = 0;
  const left = [...calls];
  return carry.flatMap((block): Content => {
    if ("reasoning" in block)
      return [{ type: "reasoning", text: block.reasoning, providerOptions: block.options }];
    if ("call" in block)
      return left.splice(0, 1).map((call) => ({
        ...partOf(call),
        ...(block.options === undefined ? {} : { providerOptions: block.options }),
      }));
    const piece = text.slice(at, at + block.text);
    at += block.text;
    return piece.trim() === "" ? [] : [{ type: "text", text: piece }];
  });
}

// It comes out of our own log, so its shape is ours; but a log may be older than this file.
function isCarry(carry: unknown): carry is readonly CarryBlock[] {
  return (
    Array.isArray(carry) &&
    carry.every((block: unknown) => {
      if (typeof block !== "object" || block === null) return false;
      if ("reasoning" in block) return typeof block.reasoning === "string" && "options" in block;
      return "text" in block ? typeof block.text === "number" : "call" in block;
    })
  );
}
