// What has come back, put together: side by side, with the one to try first, by what people said that matters.

import type { ChatMessage } from "../model.js";
import { quote } from "./quote.js";
import { aspectsIn, bestOf, factOn, saysNothing } from "./subjects.js";
import { helperPrefix, type Result, resultsOf, type Turn } from "./turn.js";

export interface Finding {
  readonly subject: string;
  /** With the subject in front. */
  readonly text: string;
  readonly ok: boolean;
}

export const findingCharsMax = 300;

/** What helpers and searches have reported. */
export function findingsIn(messages: readonly ChatMessage[]): readonly Finding[] {
  return ["spawn", "demo.search"].flatMap((tool) => resultsOf(messages, tool).map(findingOf));
}

function findingOf({ input, ok, output }: Result): Finding {
  const { prompt, query } = input;
  const subject = [prompt, query].find((one) => typeof one === "string")?.replace(helperPrefix, "") ?? "";
  const { text, message } = output;
  const told = quote(typeof text === "string" ? text : ok ? "" : `no report. ${message}`, findingCharsMax);
  return { subject, text: withSubject(subject, told), ok: ok && !saysNothing(told) };
}

/** Most who report begin with it themselves. */
export function withSubject(subject: string, told: string): string {
  return subject === "" || told.startsWith(`${subject}:`) ? told : `${subject}: ${told}`;
}

/** What is known without asking anybody. */
export function recalled(subjects: readonly string[]): readonly Finding[] {
  return subjects.map((subject) => {
    const fact = factOn(subject);
    return { subject, text: `${subject}: ${fact}`, ok: !saysNothing(fact) };
  });
}

/** `why` nothing was looked up; null where it was. */
export function comparison(turn: Turn, findings: readonly Finding[], why: string | null): string {
  const { task, told, isHelper } = turn;
  const isBrief = told.some((text) => /\b(?:brief|short|concise)/i.test(text));
  const texts = findings.map(({ text }) => (isBrief ? text.replace(/;.*/, ".") : text));
  if (isHelper) return texts.join(" ");
  const isKnown = findings.some(({ ok }) => ok);
  if (why !== null && !isKnown) return `${why} I know nothing by heart about "${quote(task)}".`;
  const begins =
    why === null
      ? `Here is what came back on "${quote(task)}":`
      : `${why} This is what I know by heart about "${quote(task)}":`;
  return `${begins}\n\n${texts.map((text) => `- ${text}`).join("\n")}`;
}

/** "" where there is nothing to choose from. */
export function recommendation(turn: Turn, findings: readonly Finding[], why: string | null): string {
  const good = findings.filter(({ ok }) => ok).map(({ subject }) => subject);
  if (good.length === 0)
    return why !== null ? "" : "I found nothing that would help, so I recommend nothing.";
  if (findings.length === 1)
    return why !== null ? "" : "I looked into nothing else, so there is nothing to compare it with.";
  const asked = resultsOf(turn.since, "clarify").map(({ output }) => output.answer);
  const answers = asked.filter((answer) => typeof answer === "string");
  const wanted = [...new Set([turn.task, ...answers, ...turn.told].flatMap(aspectsIn))];
  const first = `I would try ${bestOf(good, wanted) || "the first one"} first.`;
  if (wanted.length > 0) return `For ${wanted.join(" and ")}, ${first}`;
  const [answer] = answers;
  if (answer !== undefined) return `I cannot tell which is best for "${quote(answer)}". ${first}`;
  return asked.length > 0 ? `Nobody said what matters most. By my own judgement, ${first}` : first;
}

/** Whether it could be saved, and where; "" where nobody tried. */
export function savedIn(messages: readonly ChatMessage[]): string {
  const saved = resultsOf(messages, "file.write").at(-1);
  if (saved === undefined) return "";
  const { path, message } = saved.output;
  if (!saved.ok) return `It was not saved. ${quote(String(message))}`;
  return `Saved to ${quote(String(path ?? saved.input.path))}.`;
}
