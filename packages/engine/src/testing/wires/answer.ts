// An answer that a fake provider gives, before it is put on a wire.

export interface FakeAnswer {
  readonly reasoning: string;
  readonly text: string;
  readonly calls: readonly FakeCall[];
  readonly finish: "stop" | "calls" | "length";
  readonly usage: {
    readonly input: number;
    readonly cached: number;
    readonly output: number;
    readonly reasoning: number;
  };
  /** Told in the stream instead of the end. */
  readonly error?: { readonly type: string; readonly message: string };
  /** How many characters go into one delta. */
  readonly deltaChars: number;
}

interface FakeCall {
  readonly call_id: string;
  readonly tool: string;
  readonly args: string;
  /** As Gemini signs its calls in a chat. */
  readonly signature?: string;
}

export const plainAnswer: FakeAnswer = {
  reasoning: "",
  text: "",
  calls: [],
  finish: "stop",
  usage: { input: 20, cached: 0, output: 7, reasoning: 0 },
  deltaChars: 5,
};

/** By code points: a delta is JSON text, and a provider does not cut a character in two. */
export function deltasOf(text: string, deltaChars: number): readonly string[] {
  const points = [...text];
  return Array.from({ length: Math.ceil(points.length / deltaChars) }, (_, i) =>
    points.slice(i * deltaChars, (i + 1) * deltaChars).join(""),
  );
}

export interface FakeWire {
  /** Where requests of this wire arrive. */
  readonly path: string;
  /** The answer as SSE. */
  encode(answer: FakeAnswer, model: string): string;
  /** What the request hands over as the beginning of the answer; "" where it asks for a new one. */
  partialOf(body: unknown): string;
}

export function sse(data: { readonly [member: string]: unknown } | string, event?: string): string {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  return `${event === undefined ? "" : `event: ${event}\n`}data: ${text}\n\n`;
}

interface WireMessage {
  readonly role?: string;
  readonly content?: unknown;
}

/** The text of the assistant's message at the end, or of the one before a user's request to go on. */
export function lastSaid(messages: readonly WireMessage[]): string {
  const last = messages.at(-1);
  if (last?.role === "assistant") return textIn(last.content);
  if (last?.role !== "user" || !textIn(last.content).includes("cut off")) return "";
  const before = messages.at(-2);
  return before?.role === "assistant" ? textIn(before.content) : "";
}

export function textIn(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part: { text?: unknown }) => (typeof part.text === "string" ? part.text : "")).join("");
}
