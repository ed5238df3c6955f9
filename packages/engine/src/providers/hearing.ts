// What has been heard of one answer: parts of the SDK in, parts of ours out.

import type { LanguageModelV3FinishReason, LanguageModelV3StreamPart } from "@ai-sdk/provider";
import { type Call, ModelFailure, type ModelPart, type ModelUsage } from "../model.js";
import { unfitForLog } from "../unfit.js";
import { type CarryBlock, carryOf } from "./carry.js";
import { mostOf, toldBy, usageOf } from "./told.js";
import type { WireNames } from "./wire-names.js";

export interface Hearing {
  headers(headers: { readonly [name: string]: string }): void;
  /** Throws the provider's own error as it came, or a ModelFailure. */
  hear(part: LanguageModelV3StreamPart): readonly ModelPart[];
  isFinished(): boolean;
  usage(): ModelUsage | undefined;
  /** The failure, with what was used up until then. */
  counted(failure: ModelFailure): ModelFailure;
  endedEarly(provider: string): ModelFailure;
}

type Metadata = Extract<LanguageModelV3StreamPart, { type: "reasoning-end" }>["providerMetadata"];

/** `partial` is what was said of the answer before, by a try that broke off. */
export function hearing(toolNames: WireNames, partial: string, takesPrefill: boolean): Hearing {
  const calls: Call[] = [];
  const writing = new Map<string, string>();
  /** Calls of which some arguments were heard. */
  const argued = new Set<string>();
  const blocks: Block[] = partial === "" ? [] : [{ kind: "text", chars: partial.length }];
  const refs: { [name: string]: string } = {};
  let usage: ModelUsage | undefined;
  let isFinished = false;
  let isEndTold = false;
  let takesThoughts = false;
  // Trailing blanks of a prefill are not sent (providers refuse them), so the model says them once more.
  let blanks = takesPrefill ? partial.slice(partial.trimEnd().length) : "";

  function note(name: string, value: string | undefined): void {
    if (value !== undefined && value !== "") refs[name] = value;
  }

  function fresh(text: string): string {
    let same = 0;
    while (same < text.length && same < blanks.length && text[same] === blanks[same]) same += 1;
    blanks = same === text.length ? blanks.slice(same) : "";
    return text.slice(same);
  }

  function say(text: string): readonly ModelPart[] {
    const last = blocks.at(-1);
    if (last?.kind === "text") last.chars += text.length;
    else blocks.push({ kind: "text", chars: text.length });
    return text === "" ? [] : [{ kind: "text", text }];
  }

  function think(id: string, text: string, metadata: Metadata): readonly ModelPart[] {
    const open = blocks.find((block) => block.kind === "reasoning" && block.id === id);
    const block = open?.kind === "reasoning" ? open : undefined;
    if (block === undefined) blocks.push({ kind: "reasoning", id, text, metadata });
    else {
      block.text += text;
      block.metadata = merged(block.metadata, metadata);
    }
    return text === "" ? [] : [{ kind: "reasoning", text }];
  }

  function carried(block: Block): readonly CarryBlock[] {
    switch (block.kind) {
      case "reasoning": {
        const { text, metadata } = block;
        if (metadata === undefined) return takesThoughts ? [{ reasoning: text, options: {} }] : [];
        // What is signed goes back as it was given, and in an answer that was cut off it stands elsewhere.
        return partial === "" ? [{ reasoning: text, options: metadata }] : [];
      }
      case "text":
        return [{ text: block.chars }];
      case "call":
        return [block.carry];
    }
  }

  function finish(reason: LanguageModelV3FinishReason): readonly ModelPart[] {
    isFinished = true;
    const said = reasonOf(reason, calls.length > 0);
    const last = calls.at(-1);
    // Cut off before its first argument, it would be a call without any, and run as such.
    if (last !== undefined && (said === "length" || said === "filtered") && !argued.has(last.call_id))
      calls.splice(-1, 1, { ...last, input: "" });
    const carry = calls.length > 0 ? carryOf(blocks.flatMap(carried)) : undefined;
    return [
      ...calls.map((call): ModelPart => ({ kind: "call", ...call })),
      {
        kind: "finished",
        reason: said,
        usage: usage ?? { input_tokens: 0, output_tokens: 0, reasoning_tokens: 0, cached_tokens: 0 },
        refs: { ...refs },
        ...(carry === undefined ? {} : { carry }),
      },
    ];
  }

  return {
    headers: (headers) => note("request_id", headers["x-request-id"] ?? headers["request-id"]),
    hear(part) {
      switch (part.type) {
        case "raw": {
          const told = toldBy(part.rawValue);
          Object.assign(refs, told.refs);
          isEndTold ||= told.finish !== undefined;
          takesThoughts ||= told.takesThoughts ?? false;
          if (told.usage === undefined) return [];
          usage = mostOf(usage, told.usage);
          return [{ kind: "used", usage }];
        }
        case "response-metadata":
          note("response_id", part.id);
          note("model_id", part.modelId);
          return [];
        case "text-delta":
          return say(fresh(part.delta));
        case "reasoning-start":
        case "reasoning-end":
          return think(part.id, "", part.providerMetadata);
        case "reasoning-delta":
          return think(part.id, part.delta, part.providerMetadata);
        case "tool-input-start":
          writing.set(part.id, toolNames.back(part.toolName));
          return [];
        case "tool-input-delta": {
          const { id: call_id, delta: text } = part;
          if (text !== "") argued.add(call_id);
          return text === "" ? [] : [{ kind: "args", call_id, tool: writing.get(call_id) ?? "", text }];
        }
        case "tool-call":
          calls.push({
            call_id: part.toolCallId,
            tool: toolNames.back(part.toolName),
            input: inputOf(part.input),
          });
          blocks.push({ kind: "call", carry: carriedCall(part.providerMetadata) });
          return [];
        case "error":
          throw part.error;
        case "finish":
          // The SDK ends every stream with a finish, also one that the provider has not ended.
          if (part.finishReason.unified === "error" || isBroken(part.finishReason, isEndTold)) return [];
          usage = mostOf(usage, usageOf(part.usage));
          return finish(part.finishReason);
        default:
          // Sources, files and what providers run themselves: nothing that was asked for.
          return [];
      }
    },
    isFinished: () => isFinished,
    usage: () => usage,
    counted: ({ kind, message, retryMs }) => new ModelFailure(kind, message, retryMs, { usage }),
    endedEarly: (provider) =>
      new ModelFailure("broken", `${provider} ended its answer without a finish`, 0, { usage }),
  };
}

type Block =
  | { readonly kind: "reasoning"; readonly id: string; text: string; metadata: Metadata }
  | { readonly kind: "text"; chars: number }
  | { readonly kind: "call"; readonly carry: CarryBlock };

/** Gemini signs its calls. The SDK tells of that under the provider's name, and takes it back under Google's. */
function carriedCall(metadata: Metadata): CarryBlock {
  const signed = Object.values(metadata ?? {}).find(({ thoughtSignature }) => thoughtSignature !== undefined);
  if (signed?.thoughtSignature === undefined) return { call: true };
  return { call: true, options: { google: { thoughtSignature: signed.thoughtSignature } } };
}

function merged(a: Metadata, b: Metadata): Metadata {
  if (a === undefined || b === undefined) return a ?? b;
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return Object.fromEntries([...names].map((name) => [name, { ...a[name], ...b[name] }]));
}

/** How servers say that they had to leave in the middle. */
const brokenOff: ReadonlySet<string> = new Set([
  "abort",
  "aborted",
  "cancelled",
  "error",
  "network_error",
  "insufficient_system_resource",
]);

/** Some write `""` into every chunk, and go on with it after the end: then it is no reason, and takes none away. */
function isBroken({ unified, raw }: LanguageModelV3FinishReason, isEndTold: boolean): boolean {
  return unified === "other" && (raw === undefined || (raw === "" ? !isEndTold : brokenOff.has(raw)));
}

function reasonOf({ unified }: LanguageModelV3FinishReason, hasCalls: boolean) {
  switch (unified) {
    case "tool-calls":
      return "calls";
    case "stop":
      // Some servers say `stop` whatever they have called.
      return hasCalls ? "calls" : "stop";
    case "length":
      return "length";
    case "content-filter":
      return "filtered";
    default:
      return "other";
  }
}

/** Arguments that are no JSON, or none for a log, stay the text they are: the tool refuses them, and the model hears of it. */
function inputOf(text: string): unknown {
  if (text.trim() === "") return {};
  try {
    const input: unknown = JSON.parse(text);
    return unfitForLog(input) === undefined ? input : text;
  } catch {
    return text;
  }
}
