// A model for those who have none: it needs no key and no network, and says the same to the same conversation, so what
// it was cut off in it continues word for word. It plans, looks things up, gives parts of the work to helpers and
// puts their reports together. It is behind the same interface as any other model.

import type { ChatMessage, Model, ModelPart, ModelRequest } from "../model.js";
import { subjectsOf } from "./subjects.js";

export interface DemoOptions {
  /** Between two words, so that people can watch it. */
  readonly wordMs: number;
}

/** What it is about to say, whole; it is streamed word by word. */
interface Speech {
  readonly reasoning: string;
  readonly text: string;
  readonly calls: readonly { readonly tool: string; readonly input: unknown }[];
}

export function demoModel({ wordMs }: DemoOptions): Model {
  return {
    name: "demo",
    provider: "runwire",
    takesPrefill: true,
    async *stream(request, signal) {
      const speech = speechFor(request);
      // What was said before a cut is not said again; nor is what was thought before it.
      const isNew = request.partial === "";
      const text = speech.text.startsWith(request.partial)
        ? speech.text.slice(request.partial.length)
        : speech.text;
      for (const word of isNew ? wordsOf(speech.reasoning) : []) {
        if (!(await pause(wordMs, signal))) return;
        yield { kind: "reasoning", text: word };
      }
      for (const word of wordsOf(text)) {
        if (!(await pause(wordMs, signal))) return;
        yield { kind: "text", text: word };
      }
      for (const [i, { tool, input }] of speech.calls.entries()) {
        if (!(await pause(wordMs, signal))) return;
        yield { kind: "args", call_id: `demo-${i}`, tool, text: JSON.stringify(input) };
        yield { kind: "call", call_id: `demo-${i}`, tool, input };
      }
      yield ended(request, speech);
    },
  };
}

function ended({ messages }: ModelRequest, { reasoning, text, calls }: Speech): ModelPart {
  const heard = messages.reduce((sum, message) => sum + wordsOf(JSON.stringify(message)).length, 0);
  return {
    kind: "finished",
    reason: calls.length > 0 ? "calls" : "stop",
    usage: {
      input_tokens: heard,
      output_tokens: wordsOf(text).length + calls.length,
      reasoning_tokens: wordsOf(reasoning).length,
      cached_tokens: 0,
    },
    refs: {},
  };
}

function speechFor({ messages, tools }: ModelRequest): Speech {
  const has = (name: string): boolean => tools.some((tool) => tool.name === name);
  const task = askedOf(messages);
  if (has("plan.propose")) return planFor(task);
  const results = resultsOf(messages);
  const told = messages.at(-1);
  if (told?.role === "user" && messages.length > 1) return directed(told.content, results);
  if (task.startsWith(helperPrefix)) return results.length === 0 ? lookUp(task) : report(task, results);
  if (results.length > 0) return merged(task, results);
  return has("spawn") ? shareOut(task) : lookUp(task);
}

const helperPrefix = "Find out about ";

function planFor(task: string): Speech {
  const subjects = subjectsOf(task);
  const steps = [
    { title: `Split the question into ${subjects.length} parts`, intent: "research", est_tools: ["spawn"] },
    ...subjects.map((subject) => ({
      title: `Look into ${subject}`,
      intent: "research",
      est_tools: ["demo.search"],
    })),
    { title: "Compare the reports and answer", intent: "report", est_tools: [] },
  ];
  return {
    reasoning: `The question is: ${task}. I can look into ${subjects.length} things side by side and then compare.`,
    text: "",
    calls: [{ tool: "plan.propose", input: { steps } }],
  };
}

function shareOut(task: string): Speech {
  const subjects = subjectsOf(task);
  return {
    reasoning: `These do not depend on each other, so a helper can take each: ${subjects.join(", ")}.`,
    text: `I'll have ${subjects.join(", ")} looked into at the same time.`,
    calls: subjects.map((subject) => ({ tool: "spawn", input: { prompt: `${helperPrefix}${subject}` } })),
  };
}

function lookUp(task: string): Speech {
  const query = task.startsWith(helperPrefix) ? task.slice(helperPrefix.length) : task;
  return {
    reasoning: `I should look up ${query} before I say anything about it.`,
    text: `Looking up ${query}.`,
    calls: [{ tool: "demo.search", input: { query } }],
  };
}

function report(task: string, results: readonly string[]): Speech {
  const subject = task.slice(helperPrefix.length);
  return {
    reasoning: "That is enough for a short report.",
    text: `${subject}: ${results.join(" ")}`,
    calls: [],
  };
}

function merged(task: string, results: readonly string[]): Speech {
  const lines = results.map((result) => `- ${result}`);
  return {
    reasoning: "The reports are in. I'll put them side by side and say which I would take first.",
    text: `Here is what came back on "${task}":\n\n${lines.join("\n")}\n\nI would try the first one first.`,
    calls: [],
  };
}

function directed(instruction: string, results: readonly string[]): Speech {
  const known = results.length === 0 ? "" : ` So far I know: ${results.join(" ")}`;
  return {
    reasoning: `I was asked to change course: ${instruction}`,
    text: `Understood: ${instruction}${known}`,
    calls: [],
  };
}

function askedOf(messages: readonly ChatMessage[]): string {
  const first = messages.find(({ role }) => role === "user");
  return first?.role === "user" ? first.content.trim() : "";
}

/** What tools and helpers have reported, as text. */
function resultsOf(messages: readonly ChatMessage[]): readonly string[] {
  return messages.flatMap((message) => {
    if (message.role !== "tool") return [];
    const { output } = message;
    const { text, message: error } = (output ?? {}) as { text?: unknown; message?: unknown };
    return [typeof text === "string" ? text : typeof error === "string" ? error : JSON.stringify(output)];
  });
}

/** With their spaces, so that they join to what they came from. */
function wordsOf(text: string): readonly string[] {
  return text.match(/\s*\S+\s*$|\s*\S+/g) ?? [];
}

/** False where it was cut short. */
function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return Promise.resolve(false);
  return new Promise((resolve) => {
    const stop = (): void => {
      clearTimeout(timer);
      resolve(false);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve(true);
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
