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
      // Nobody watches what is said aside.
      const paceMs = request.aside === undefined ? wordMs : 0;
      // What was said before a cut is not said again; nor is what was thought before it.
      const isNew = request.partial === "";
      const text = speech.text.startsWith(request.partial)
        ? speech.text.slice(request.partial.length)
        : speech.text;
      for (const word of isNew ? wordsOf(speech.reasoning) : []) {
        if (!(await pause(paceMs, signal))) return;
        yield { kind: "reasoning", text: word };
      }
      for (const word of wordsOf(text)) {
        if (!(await pause(paceMs, signal))) return;
        yield { kind: "text", text: word };
      }
      for (const [i, { tool, input }] of speech.calls.entries()) {
        if (!(await pause(paceMs, signal))) return;
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

/** What comes next follows from the question and from which tools have reported since; nothing else is remembered. */
function speechFor(request: ModelRequest): Speech {
  const { messages, tools, aside } = request;
  if (aside === "title") return brief(titleOf(messages));
  if (aside === "suggestions") return brief(suggestionsFor(messages));
  const has = (name: string): boolean => tools.some((tool) => tool.name === name);
  const turn = turnOf(request);
  if (has("plan.propose")) return planFor(turn);
  const { task, since } = turn;
  const told = since.at(-1);
  if (told?.role === "user") return directed(told.content, resultsOf(since));
  const found = resultsOf(since, "demo.search");
  if (task.startsWith(helperPrefix) || !has("spawn"))
    return found.length === 0 ? lookUp(task) : report(task, found);
  const wishes = resultsOf(since, "clarify");
  if (/^help me choose/i.test(task) && has("clarify") && wishes.length === 0) return question();
  const reports = resultsOf(since, "spawn");
  if (reports.length === 0) return shareOut(turn, wishes);
  const saved = resultsOf(since, "file.write");
  if (/\bsave\b/i.test(task) && has("file.write") && saved.length === 0) return keep(task, reports);
  return merged(task, reports, saved);
}

interface Turn {
  readonly task: string;
  /** What was asked in the turns before, oldest first. */
  readonly before: readonly string[];
  /** What was said and done since the task was given. */
  readonly since: readonly ChatMessage[];
  readonly subjects: readonly string[];
  /** The plan's lines, as the system's words have them: `s2. Look into uPlot`. */
  readonly plan: readonly { readonly id: string; readonly title: string }[];
}

/** The task is what was asked last. What was said to steer the run is none. */
function turnOf({ messages, system }: ModelRequest): Turn {
  const isTask = (message: ChatMessage): boolean => message.role === "user" && message.direction === undefined;
  const at = messages.findLastIndex(isTask);
  const asked = messages
    .filter(isTask)
    .map((message) => (message.role === "user" ? message.content.trim() : ""));
  const task = asked.at(-1) ?? "";
  const before = asked.slice(0, -1);
  const plan = [...system.matchAll(/^(\S+)\. (.+)$/gm)].map(([, id = "", title = ""]) => ({ id, title }));
  return { task, before, since: messages.slice(at + 1), subjects: subjectsOf(task, before), plan };
}

const helperPrefix = "Find out about ";

function question(): Speech {
  return {
    reasoning: "What is best depends on what matters, and I was not told.",
    text: "One question first.",
    calls: [
      {
        tool: "clarify",
        input: { question: "What matters most?", choices: ["speed", "many features", "a small download"] },
      },
    ],
  };
}

function planFor({ task, subjects }: Turn): Speech {
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

function shareOut({ task, before, subjects, plan }: Turn, wishes: readonly string[]): Speech {
  const heard = wishes.length === 0 ? "" : `Good to know: ${wishes.join(" ")}. `;
  const last = before.at(-1);
  const remembered = last === undefined ? "" : `You asked before: "${last}". Now: "${task}". `;
  const stepFor = (subject: string): object => {
    const step = plan.find(({ title }) => title.endsWith(subject));
    return step === undefined ? {} : { plan_step: step.id };
  };
  return {
    reasoning: `These do not depend on each other, so a helper can take each: ${subjects.join(", ")}.`,
    text: `${heard}${remembered}I'll have ${subjects.join(", ")} looked into at the same time.`,
    calls: subjects.map((subject) => ({
      tool: "spawn",
      input: { prompt: `${helperPrefix}${subject}`, ...stepFor(subject) },
    })),
  };
}

function keep(task: string, reports: readonly string[]): Speech {
  return {
    reasoning: "The reports are in, and they should be kept.",
    text: "I'll save the comparison to report.md.",
    calls: [{ tool: "file.write", input: { path: "report.md", content: comparison(task, reports) } }],
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

function merged(task: string, reports: readonly string[], saved: readonly string[]): Speech {
  const kept = saved.length === 0 ? "" : `\n\nOn saving it: ${saved.join(" ")}`;
  return {
    reasoning: "I'll put the reports side by side and say which I would take first.",
    text: `${comparison(task, reports)}\n\nI would try the first one first.${kept}`,
    calls: [],
  };
}

function comparison(task: string, reports: readonly string[]): string {
  return `Here is what came back on "${task}":\n\n${reports.map((report) => `- ${report}`).join("\n")}`;
}

function directed(instruction: string, results: readonly string[]): Speech {
  const known = results.length === 0 ? "" : ` So far I know: ${results.join(" ")}`;
  return {
    reasoning: `I was asked to change course: ${instruction}`,
    text: `Understood: ${instruction}${known}`,
    calls: [],
  };
}

function brief(text: string): Speech {
  return { reasoning: "", text, calls: [] };
}

const titleWordsMax = 8;

/** The first words of what was asked. */
function titleOf([asked]: readonly ChatMessage[]): string {
  const words = asked?.role === "user" ? asked.content.trim().split(/\s+/).slice(0, titleWordsMax) : [];
  const title = words.join(" ");
  return title.slice(0, 1).toUpperCase() + title.slice(1);
}

function suggestionsFor([asked]: readonly ChatMessage[]): string {
  const [first, second] = subjectsOf(asked?.role === "user" ? asked.content : "");
  return [
    `Tell me more about ${first}`,
    `What speaks against ${first}?`,
    `Compare ${first} and ${second}`,
  ].join("\n");
}

/** What tools and helpers have reported, as text; of one tool where it is named. */
function resultsOf(messages: readonly ChatMessage[], tool?: string): readonly string[] {
  return messages.flatMap((message) => {
    if (message.role !== "tool" || (tool !== undefined && message.tool !== tool)) return [];
    const {
      text,
      answer,
      note,
      message: error,
    } = (message.output ?? {}) as { readonly [m: string]: unknown };
    const said = [text, answer, note, error].find((one) => typeof one === "string");
    return [typeof said === "string" ? said : JSON.stringify(message.output)];
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
