// A run as the conversation it was: what a fork, and the next turn of its session, begin with. It is a fold of the
// run's own events, of either view, and ends wherever the fold does.

import { elsewhere } from "./elsewhere.js";
import type { AnyEvent, Event, Facts } from "./events.js";
import { isFinal } from "./state.js";

/** How a message looks that a run made; those that it was given are kept as they are. */
export type ConversationMessage =
  | { readonly role: "user"; readonly content: unknown }
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

export interface Conversation {
  /** The payload of `turn.submitted`. */
  readonly asked: Facts;
  /** Everything that was said and done, up to the last whole answer and its results. */
  readonly messages: readonly (ConversationMessage | Facts)[];
  /** What people said and what was settled: what a later turn needs to know. */
  readonly history: readonly Facts[];
  /** The answer that is being made. */
  readonly text: string;
  readonly calls: readonly OpenCall[];
  /** Whether the model has said something since the last settled message. */
  readonly said: boolean;
  /** What a redirection asks for, until it is taken up. */
  readonly redirection: string | null;
}

interface OpenCall extends ConversationCall {
  readonly ended: { readonly ok: boolean; readonly output: unknown } | null;
}

export const emptyConversation: Conversation = {
  asked: {},
  messages: [],
  history: [],
  text: "",
  calls: [],
  said: false,
  redirection: null,
};

export function converse(c: Conversation, event: Event): Conversation {
  // Children speak with their parent, and their parent with people.
  if (event.child_id !== null) return c;
  const e = event as AnyEvent;
  switch (e.type) {
    case "turn.submitted": {
      const messages = Array.isArray(e.payload.messages) ? (e.payload.messages as readonly Facts[]) : [];
      return { ...c, asked: e.payload, messages, history: messages.flatMap(plain) };
    }
    case "text.delta":
      if (e.payload.call_id != null || e.payload.text === "") return c;
      return { ...nextAnswer(c), said: true, text: nextAnswer(c).text + e.payload.text };
    case "tool.call":
    case "tool.start": {
      const { call_id, tool } = e.payload;
      const input = toldOf(e.payload, "input");
      if (c.calls.some((call) => call.call_id === call_id))
        return withCall(c, call_id, { tool, ...(input === undefined ? {} : { input }) });
      const next = nextAnswer(c);
      return { ...next, calls: [...next.calls, { call_id, tool, input: input ?? null, ended: null }] };
    }
    case "tool.end": {
      const { call_id, ok, error, blob_ref } = e.payload;
      const gave = toldOf(e.payload, "output") ?? (blob_ref == null ? null : { blob_ref });
      return withCall(c, call_id, { ended: { ok, output: ok ? gave : (error ?? gave) } });
    }
    case "model.completed":
      return c.calls.length === 0 ? wholeAnswer(c) : c;
    case "message.settled": {
      const { text } = e.payload;
      const settled = c.said ? c : { ...wholeAnswer(c), text };
      const history = text === "" ? c.history : [...c.history, { role: "assistant", content: text }];
      return { ...wholeAnswer(settled), said: false, history };
    }
    case "steer.delivered":
      return told(c, e.payload.text);
    case "control.requested": {
      const { action, instruction } = e.payload;
      return action === "redirect" ? { ...c, redirection: String(instruction) } : c;
    }
    case "run.lifecycle": {
      const { state } = e.payload;
      if (isFinal(state)) return wholeAnswer(c);
      if (state !== "running" || c.redirection === null) return c;
      return { ...told(c, c.redirection), redirection: null };
    }
    default:
      return c;
  }
}

/** A member; of one that lies beside the log, where it is and how it begins. */
function toldOf(payload: Facts, member: string): unknown {
  return elsewhere(payload, member) ?? payload[member];
}

/** Its messages so far. Calls that have not ended by then are told as interrupted: each call has its result. */
export function messagesOf(c: Conversation): readonly (ConversationMessage | Facts)[] {
  return wholeAnswer(c).messages;
}

/** Once every call has its result, what follows is another answer. */
function nextAnswer(c: Conversation): Conversation {
  return c.calls.length > 0 && c.calls.every(({ ended }) => ended !== null) ? wholeAnswer(c) : c;
}

function wholeAnswer(c: Conversation): Conversation {
  if (c.text === "" && c.calls.length === 0) return c;
  const answer: ConversationMessage = {
    role: "assistant",
    content: c.text,
    calls: c.calls.map(({ call_id, tool, input }) => ({ call_id, tool, input })),
  };
  const results = c.calls.map(({ call_id, tool, ended }): ConversationMessage => {
    const { ok, output } = ended ?? interrupted;
    return { role: "tool", call_id, tool, ok, output };
  });
  return { ...c, messages: [...c.messages, answer, ...results], text: "", calls: [] };
}

const interrupted = { ok: false, output: { code: "KAI-RUN-TOOL-0001", message: "interrupted" } };

function told(c: Conversation, content: string): Conversation {
  const whole = wholeAnswer(c);
  const message = { role: "user", content } as const;
  return { ...whole, messages: [...whole.messages, message], history: [...c.history, message] };
}

function withCall(c: Conversation, call_id: string, more: Partial<OpenCall>): Conversation {
  return { ...c, calls: c.calls.map((call) => (call.call_id === call_id ? { ...call, ...more } : call)) };
}

/** A given message without its calls; none where nothing is left, or where it is a tool's. */
function plain({ role, content }: Facts): readonly Facts[] {
  if (role === "tool" || content == null || content === "") return [];
  return [{ role: role === "assistant" ? "assistant" : "user", content }];
}
