// A run as the conversation it was: what a fork, and the next turn of its session, begin with. It is a fold of the
// run's own events, of either view, and ends wherever the fold does.

import { type Elsewhere, elsewhere } from "./elsewhere.js";
import type { AnyEvent, Event, Facts, Payloads } from "./events.js";
import { type Mine, mineOf, withItem, withItems, withMember } from "./folding.js";
import { isObject } from "./parse.js";
import { sameJson } from "./same-json.js";
import { isFinal } from "./state.js";

/** How a message looks that a run made; those that it was given are kept as they are. */
export type ConversationMessage =
  | ({ readonly role: "user" } & Words)
  | { readonly role: "assistant"; readonly content: string; readonly calls: readonly ConversationCall[] }
  | {
      readonly role: "tool";
      readonly call_id: string;
      readonly tool: string;
      readonly ok: boolean;
      /** What the tool gave, or the error it ended with. */
      readonly output: unknown;
    };

export interface ConversationCall {
  readonly call_id: string;
  readonly tool: string;
  readonly input: unknown;
}

/** What a person said. Of what lies beside the log `content` is how it begins, and `spilled` says where it is. */
export type Words = {
  readonly content: string;
  readonly spilled?: { readonly content: Elsewhere };
};

export interface Conversation {
  /** The payload of the first `turn.submitted`: what the run was given. */
  readonly asked: Facts;
  /** Everything that was said and done, up to the last whole answer and its results. */
  readonly messages: readonly (ConversationMessage | Facts)[];
  /** What people said and what was settled: what a later turn needs to know. */
  readonly history: readonly Facts[];
  /** Those of the messages that people have said since the last answer. */
  readonly unanswered: readonly Facts[];
  /** The answer that is being made. */
  readonly text: string;
  readonly calls: readonly OpenCall[];
  /** Where in that list each of them is. */
  readonly places: { readonly [call_id: string]: number };
  /** How many of them have not ended. */
  readonly open: number;
  /** What the model has said since the last settled message, before and after its calls. */
  readonly said: string;
  /** What a redirection asks for, until it is taken up. */
  readonly redirection: Words | null;
}

interface OpenCall extends ConversationCall {
  readonly ended: { readonly ok: boolean; readonly output: unknown } | null;
}

export const emptyConversation: Conversation = {
  asked: {},
  messages: [],
  history: [],
  unanswered: [],
  text: "",
  calls: [],
  places: {},
  open: 0,
  said: "",
  redirection: null,
};

/** One more event. Whoever folds many of them hands each the same `mine`, and pays for no more than there are. */
export function converse(c: Conversation, event: Event, mine: Mine | null = null): Conversation {
  // Children speak with their parent, and their parent with people.
  if (event.child_id !== null) return c;
  const e = event as AnyEvent;
  switch (e.type) {
    case "turn.submitted":
      return submitted(mine, c, e.payload);
    case "text.delta": {
      if (e.payload.call_id != null || e.payload.text === "") return c;
      const next = nextAnswer(mine, c);
      return { ...next, said: next.said + e.payload.text, text: next.text + e.payload.text };
    }
    case "tool.call":
    case "tool.start": {
      const { call_id, tool } = e.payload;
      const input = toldOf(e.payload, "input");
      if (callOf(c, call_id) !== undefined)
        return withCall(mine, c, call_id, { tool, ...(input === undefined ? {} : { input }) });
      const next = nextAnswer(mine, c);
      const places = withMember(mine, next.places, call_id, next.calls.length);
      const calls = withItem(mine, next.calls, { call_id, tool, input: input ?? null, ended: null });
      return { ...next, calls, places, open: next.open + 1 };
    }
    case "tool.end": {
      const { call_id, ok, blob_ref } = e.payload;
      const gave = toldOf(e.payload, "output") ?? (blob_ref == null ? null : { blob_ref });
      const ended = { ok, output: ok ? gave : (toldOf(e.payload, "error") ?? gave) };
      const open = callOf(c, call_id)?.ended === null ? c.open - 1 : c.open;
      return { ...withCall(mine, c, call_id, { ended }), open };
    }
    case "model.completed":
      return c.calls.length === 0 ? wholeAnswer(mine, c) : c;
    case "message.settled": {
      const { text } = e.payload;
      const settled = isSaid(c.said, e.payload) ? c : { ...wholeAnswer(mine, c), text };
      const history =
        text === "" ? c.history : withItem(mine, c.history, { role: "assistant", content: text });
      return { ...wholeAnswer(mine, settled), said: "", history };
    }
    case "steer.delivered":
      return told(mine, c, wordsIn(e.payload, "text"));
    case "control.requested":
      return e.payload.action === "redirect" ? { ...c, redirection: wordsIn(e.payload, "instruction") } : c;
    case "run.lifecycle": {
      const { state } = e.payload;
      if (isFinal(state)) return wholeAnswer(mine, c);
      if (state !== "running" || c.redirection === null) return c;
      return { ...told(mine, c, c.redirection), redirection: null };
    }
    default:
      return c;
  }
}

/** A producer may say again what its run was asked, or what it is asked next; what it was given stays. */
function submitted(mine: Mine | null, c: Conversation, payload: Facts): Conversation {
  const asked = Object.keys(c.asked).length === 0 ? payload : c.asked;
  const brought = broughtBy(payload);
  // What comes before the last answer in it was said before.
  const words = brought.slice(brought.findLastIndex(isAnswer) + 1).filter(({ role }) => role !== "system");
  if (c.messages.length === 0 && c.text === "" && c.calls.length === 0)
    return { ...c, asked, messages: brought, history: brought.flatMap(plain), unanswered: words };
  if (words.length === 0) return { ...c, asked };
  const whole = { ...wholeAnswer(mine, c), asked };
  const more = unsaid(whole.unanswered, words);
  if (more.length === 0) return whole;
  return {
    ...whole,
    messages: withItems(mine, whole.messages, more),
    history: withItems(mine, whole.history, more.flatMap(plain)),
    unanswered: withItems(mine, whole.unanswered, more),
  };
}

function isAnswer({ role }: Facts): boolean {
  return role === "assistant" || role === "tool";
}

/** What a turn is submitted with: messages, or the one text that some wires have instead. */
export function broughtBy({ messages, prompt, message }: Facts): readonly Facts[] {
  const list = Array.isArray(messages) ? messages.filter(isObject) : [];
  if (list.length > 0) return list;
  const text = [prompt, message].find((one) => typeof one === "string" && one.trim() !== "");
  return text === undefined ? [] : [{ role: "user", content: text }];
}

/** What of these words is new: they may repeat the last that was said, or begin with all of it. */
function unsaid(said: readonly Facts[], words: readonly Facts[]): readonly Facts[] {
  const repeated = Math.min(said.length, words.length);
  const last = said.slice(-words.length);
  return last.every((one, i) => isSaidAgain(one, words[i] as Facts)) ? words.slice(repeated) : words;
}

/** Whether it says nothing beyond the first. What says nothing at all repeats nothing either. */
function isSaidAgain(first: Facts, again: Facts): boolean {
  const said = Object.keys(again).filter((name) => isSaying(name, again[name]));
  return said.length > 0 && said.every((name) => isSameMember(first, again, name));
}

/** How somebody counts a message, when they sent it and where it lies is no part of what is said. */
function isSaying(name: string, value: unknown): boolean {
  if (name === "role" || name === "id" || name === "spilled") return false;
  return typeof value === "string" || (typeof value === "object" && value !== null);
}

/** Many texts may begin like one that lies beside the log. */
function isSameMember(first: Facts, again: Facts, name: string): boolean {
  const where = elsewhere(again, name);
  if (where !== undefined) return elsewhere(first, name)?.blob_ref === where.blob_ref;
  return sameJson(first[name], again[name]);
}

/** A member; of one that lies beside the log, where it is and how it begins. */
function toldOf(payload: Facts, member: string): unknown {
  return elsewhere(payload, member) ?? payload[member];
}

function wordsIn(payload: Facts, member: string): Words {
  const where = elsewhere(payload, member);
  const content = String(payload[member]);
  return where === undefined ? { content } : { content, spilled: { content: where } };
}

/** Its messages so far. Calls that have not ended by then are told as interrupted: each call has its result. */
export function messagesOf(c: Conversation): readonly (ConversationMessage | Facts)[] {
  return wholeAnswer(null, c).messages;
}

/** Whether a settled text came before as deltas; of one that is cut off, that is how they begin. */
function isSaid(said: string, { text, truncated }: Payloads["message.settled"]): boolean {
  // Those who settle a text may trim it, or join what was said around calls.
  const [deltas, whole] = [said, text].map((one) => one.replace(/\s+/g, "")) as [string, string];
  return truncated === true ? deltas.startsWith(whole) : deltas.endsWith(whole);
}

/** Once every call has its result, what follows is another answer. */
function nextAnswer(mine: Mine | null, c: Conversation): Conversation {
  return c.calls.length > 0 && c.open === 0 ? wholeAnswer(mine, c) : c;
}

function wholeAnswer(mine: Mine | null, c: Conversation): Conversation {
  if (c.text === "" && c.calls.length === 0) return c;
  const answer: ConversationMessage = {
    role: "assistant",
    content: c.text,
    calls: c.calls.map(({ call_id, tool, input }) => ({ call_id, tool, input })),
  };
  const messages = mineOf(mine, c.messages as (ConversationMessage | Facts)[]);
  messages.push(answer);
  for (const { call_id, tool, ended } of c.calls) {
    const { ok, output } = ended ?? interrupted;
    messages.push({ role: "tool", call_id, tool, ok, output });
  }
  return { ...c, messages, unanswered: [], text: "", calls: [], places: {}, open: 0 };
}

const interrupted = { ok: false, output: { code: "KAI-RUN-TOOL-0001", message: "interrupted" } };

function told(mine: Mine | null, c: Conversation, words: Words): Conversation {
  const whole = wholeAnswer(mine, c);
  const message = { role: "user", ...words } as const;
  return {
    ...whole,
    messages: withItem(mine, whole.messages, message),
    history: withItem(mine, c.history, message),
    unanswered: withItem(mine, whole.unanswered, message),
  };
}

function callOf(c: Conversation, call_id: string): OpenCall | undefined {
  return Object.hasOwn(c.places, call_id) ? c.calls[c.places[call_id] as number] : undefined;
}

function withCall(
  mine: Mine | null,
  c: Conversation,
  call_id: string,
  more: Partial<OpenCall>,
): Conversation {
  const call = callOf(c, call_id);
  if (call === undefined) return c;
  const calls = mineOf(mine, c.calls as OpenCall[]);
  calls[c.places[call_id] as number] = { ...call, ...more };
  return { ...c, calls };
}

/** A given message without its calls; none where nothing is left, or where it is a tool's. */
function plain({ role, content }: Facts): readonly Facts[] {
  if (role === "tool" || content == null || content === "") return [];
  return [{ role: role === "assistant" ? "assistant" : "user", content }];
}
