// What a model gets of a tool's result. The log keeps all of it; a prompt has less room, and a result stays in the
// conversation for good. So it is bounded, and pictures go as pictures to those who take them: as text they would fill
// everything and show nothing.

import type { LanguageModelV3ToolResultPart } from "@ai-sdk/provider";
import { type Facts, isObject } from "@runwire/protocol";
import { limits } from "../limits.js";
import type { ChatMessage } from "../model.js";
import { excerptOf } from "../tools/excerpt.js";

type Output = LanguageModelV3ToolResultPart["output"];
type Json = Extract<Output, { type: "json" }>["value"];
type Result = Extract<ChatMessage, { role: "tool" }>;

/** A block of an MCP server's result that is no text. */
interface DataBlock extends Facts {
  readonly data: string;
}

/** The blocks that are to be shown: the newest, as many as there is room for. */
export function picturesIn(messages: readonly ChatMessage[]): ReadonlySet<unknown> {
  const all = messages.flatMap((message) =>
    message.role === "tool" && message.ok ? blocksIn(message.output) : [],
  );
  const newest = all.filter(isPicture).slice(-limits.picturesMax).reverse();
  let chars = 0;
  return new Set(
    newest.filter(({ data }) => {
      chars += data.length;
      return chars <= limits.pictureCharsMax;
    }),
  );
}

export function resultFor({ ok, output }: Result, shown: ReadonlySet<unknown>): Output {
  if (!ok) {
    const error = { error: jsonOf(output) };
    const text = excerpt(JSON.stringify(error));
    return text === null ? { type: "error-json", value: error } : { type: "error-text", value: text };
  }
  if (typeof output === "string")
    return { type: "text", value: output === "" ? "(no output)" : (excerpt(output) ?? output) };
  const value = withoutData(output, shown);
  const json = JSON.stringify(value);
  const text = excerpt(json);
  const pictures = blocksIn(output).filter((block) => shown.has(block));
  if (pictures.length > 0)
    return { type: "content", value: [{ type: "text", text: text ?? json }, ...pictures.map(pictureOf)] };
  return text === null ? { type: "json", value } : { type: "text", value: text };
}

/** Null where it fits. */
function excerpt(text: string): string | null {
  const { resultHeadBytes, resultTailBytes } = limits;
  if (Buffer.byteLength(text) <= resultHeadBytes + resultTailBytes) return null;
  const kept = excerptOf(resultHeadBytes, resultTailBytes, "; the log has them");
  kept.add(text);
  return kept.read();
}

function blocksIn(output: unknown): readonly DataBlock[] {
  if (!isObject(output) || !Array.isArray(output.content)) return [];
  return output.content.filter(isData);
}

function isData(block: unknown): block is DataBlock {
  return isObject(block) && typeof block.type === "string" && typeof block.data === "string";
}

/** The output with words in place of what is no text. */
function withoutData(output: unknown, shown: ReadonlySet<unknown>): Json {
  if (blocksIn(output).length === 0) return jsonOf(output);
  const { content, ...others } = output as { readonly content: readonly unknown[] };
  const told = content.map((block) => {
    if (!isData(block)) return block;
    const bytes = Buffer.byteLength(block.data, "base64");
    return {
      ...block,
      data: shown.has(block) ? "[shown below]" : `[${bytes} bytes left out; the log has them]`,
    };
  });
  return { content: told, ...others } as Json;
}

/** What the bytes say of themselves: providers refuse a picture whose server names its kind wrongly. */
const beginnings = [
  ["iVBORw0KGgo", "image/png"],
  ["/9j/", "image/jpeg"],
  ["R0lGOD", "image/gif"],
  ["UklGR", "image/webp"],
] as const;

function mediaTypeOf({ data }: DataBlock): string | undefined {
  return beginnings.find(([beginning]) => data.startsWith(beginning))?.[1];
}

function isPicture(block: DataBlock): boolean {
  return block.type === "image" && mediaTypeOf(block) !== undefined;
}

function pictureOf(block: DataBlock) {
  return { type: "image-data" as const, data: block.data, mediaType: mediaTypeOf(block) ?? "" };
}

/** What comes out of the log is JSON already; `undefined` is not. */
function jsonOf(value: unknown): Json {
  return (value === undefined ? null : value) as Json;
}
