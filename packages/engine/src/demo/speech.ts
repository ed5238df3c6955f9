// What the demo says and does next. It follows from the conversation and from the tools that it is offered: from what
// has come back since the task was given; nothing else is remembered.

import type { ModelRequest } from "../model.js";
import { toolsPrefix } from "../plan-steps.js";
import { comparison, type Finding, findingsIn, recalled, recommendation, savedIn } from "./answers.js";
import { suggestionsFor, titleOf } from "./asides.js";
import { findingsTold, wayChosenIn } from "./parts.js";
import { capital, quote, sentence } from "./quote.js";
import { aspects } from "./subjects.js";
import { sideBySide, thoughtFor } from "./thoughts.js";
import { helperPrefix, resultsOf, type Turn, turnOf } from "./turn.js";

/** Whole; it is streamed word by word. */
export interface Speech {
  readonly reasoning: string;
  readonly text: string;
  readonly calls: readonly { readonly tool: string; readonly input: unknown }[];
}

export function speechFor(request: ModelRequest): Speech {
  const { messages, tools, aside, purpose, system } = request;
  if (aside === "title") return brief(titleOf(messages));
  if (aside === "suggestions") return brief(suggestionsFor(messages));
  if (purpose !== undefined) return { ...thoughtFor(request, purpose), calls: [] };
  const has = (name: string): boolean => tools.some((tool) => tool.name === name);
  const turn = turnOf(request);
  if (has("plan.propose")) return planFor(turn, toolsToldIn(system));
  if (turn.instead !== null) return directed(turn, turn.instead);
  const { since } = turn;
  if (turn.task.startsWith(sideBySide)) return together(turn);
  const told = findingsTold(system);
  if (told.length > 0) return answerFrom(turn, told);
  if (isToAsk(turn) && has("clarify") && resultsOf(since, "clarify").length === 0) return question(turn);
  const subjects = subjectsFor(turn);
  const tool = lookerAmong(has, turn);
  const found = findingsIn(since);
  if (found.length === 0 && tool !== null && subjects.length > 0)
    return keepingTo(wayChosenIn(system), lookInto(turn, subjects, tool));
  const findings = found.length > 0 ? found : recalled(turn.subjects);
  const nothing = tool === null ? "I have nothing to look it up with." : "The plan has me look nothing up.";
  const why = found.length > 0 ? null : nothing;
  const compared = comparison(turn, findings, why);
  if (turn.isHelper) return said("That is enough for a short report.", turn, compared);
  const isSaved = resultsOf(since, "file.write").length > 0;
  if (isToSave(turn) && has("file.write") && !isSaved) return keep(turn, compared);
  const parts = [compared, recommendation(turn, findings, why), savedIn(since)];
  return said(
    "I'll put it side by side and say which I would take first.",
    turn,
    parts.filter((part) => part !== "").join("\n\n"),
  );
}

/** The part that needs the others. */
function together(turn: Turn): Speech {
  const found = findingsTold(turn.task);
  const lines = found.map(({ text }) => `- ${text}`).join("\n");
  return said("The others have found it all out; I put it in one list.", turn, lines);
}

function answerFrom(turn: Turn, findings: readonly Finding[]): Speech {
  const parts = [comparison(turn, findings, null), recommendation(turn, findings, null)];
  return said("Every part is there. I'll put them together.", turn, parts.join("\n\n"));
}

function keepingTo(way: string, speech: Speech): Speech {
  return way === "" ? speech : { ...speech, reasoning: `I thought it through: ${way} ${speech.reasoning}` };
}

function brief(text: string): Speech {
  return { reasoning: "", text, calls: [] };
}

function said(reasoning: string, turn: Turn, text: string): Speech {
  return { reasoning, text: understood(turn) + text, calls: [] };
}

/** What comes with calls is a paragraph of its own: more will be said after it. */
function called(reasoning: string, turn: Turn, text: string, calls: Speech["calls"]): Speech {
  return { reasoning, text: `${understood(turn)}${text}\n\n`, calls };
}

const toldMax = 5;

function understood({ news, task, since, isRedirected }: Turn): string {
  const isFirst = !since.some(({ role }) => role === "assistant");
  const told = [...(isRedirected && isFirst ? [task] : []), ...news];
  if (told.length === 0) return "";
  const rest = told.length > toldMax ? ` And ${told.length - toldMax} more.` : "";
  return `Understood: ${told
    .slice(0, toldMax)
    .map((text, i) => (i === 0 ? sentence(text) : capital(sentence(text))))
    .join(" ")}${rest} `;
}

const toSave = /\bsave\b/i;

/** A plan is kept to: what is not in it is not done. */
function isToAsk({ task, plan }: Turn): boolean {
  return plan.length > 0 ? stepFor(plan, toAsk) !== undefined : /^help me choose/i.test(task);
}

function isToSave({ task, plan }: Turn): boolean {
  return plan.length > 0 ? stepFor(plan, toSave) !== undefined : toSave.test(task);
}

function subjectsFor({ subjects, plan }: Turn): readonly string[] {
  return plan.length > 0 ? [...new Set(plan.flatMap((line) => line.subjects))] : subjects;
}

const toAsk = /^ask\b/i;

function stepFor(plan: Turn["plan"], what: RegExp): string | undefined {
  return plan.find(({ title }) => what.test(title))?.id;
}

function withStep(input: object, plan_step: string | undefined): object {
  return plan_step === undefined ? input : { ...input, plan_step };
}

function toolsToldIn(system: string): readonly string[] {
  const told = system.split("\n").find((line) => line.startsWith(toolsPrefix));
  return told?.slice(toolsPrefix.length).split(", ") ?? [];
}

/** A helper has no helpers. */
function lookerAmong(has: (name: string) => boolean, { isHelper }: Turn): "spawn" | "demo.search" | null {
  if (has("spawn") && !isHelper) return "spawn";
  return has("demo.search") ? "demo.search" : null;
}

function planFor(turn: Turn, tools: readonly string[]): Speech {
  const { task, subjects } = turn;
  const has = (name: string): boolean => tools.includes(name);
  const looker = lookerAmong(has, turn);
  const answer = looker === null ? "Answer from what I know" : "Compare the reports and answer";
  const steps = [
    ...(isToAsk(turn) && has("clarify")
      ? [{ title: "Ask what matters most", intent: "other", est_tools: ["clarify"] }]
      : []),
    ...(looker === null ? [] : subjects).map((subject) => ({
      title: `Look into ${subject}`,
      intent: "research",
      est_tools: [has("demo.search") ? "demo.search" : "spawn"],
    })),
    ...(isToSave(turn) && has("file.write")
      ? [{ title: "Save the comparison", intent: "write", est_tools: ["file.write"] }]
      : []),
    { title: answer, intent: "report", est_tools: [] },
  ];
  const parts = subjects.length === 1 ? "one thing" : `${subjects.length} things side by side`;
  const way = looker === null ? "I have nothing to look it up with." : `I can look into ${parts}.`;
  return {
    reasoning: `The question is: ${sentence(task)} ${way}`,
    text: "",
    calls: [{ tool: "plan.propose", input: { steps } }],
  };
}

function question(turn: Turn): Speech {
  const asked = { question: "What matters most?", choices: aspects };
  return called("What is best depends on what matters, and I was not told.", turn, "One question first.", [
    { tool: "clarify", input: withStep(asked, stepFor(turn.plan, toAsk)) },
  ]);
}

function lookInto(turn: Turn, subjects: readonly string[], tool: "spawn" | "demo.search"): Speech {
  const { task, before, plan, since, isHelper } = turn;
  const names = subjects.join(", ");
  const last = before.at(-1);
  const remembered = last === undefined ? "" : `You asked before: "${quote(last)}". Now: "${quote(task)}". `;
  const calls = subjects.map((subject) => {
    const input = tool === "spawn" ? { prompt: `${helperPrefix}${subject}` } : { query: subject };
    return { tool, input: withStep(input, plan.find((line) => line.subjects.includes(subject))?.id) };
  });
  if (isHelper)
    return called(
      `I should look up ${names} before I say anything about it.`,
      turn,
      `Looking up ${names}.`,
      calls,
    );
  const atOnce = subjects.length === 1 ? "" : " at the same time";
  const will = tool === "spawn" ? `I'll have ${names} looked into${atOnce}.` : `I'll look up ${names}.`;
  const why =
    tool === "spawn"
      ? `These do not depend on each other, so a helper can take each: ${names}.`
      : `I have no helpers in this run, so I look for myself: ${names}.`;
  return called(why, turn, `${heardIn(since)}${remembered}${will}`, calls);
}

/** What was answered to the question, where it was asked. */
function heardIn(since: Turn["since"]): string {
  const [asked] = resultsOf(since, "clarify");
  if (asked === undefined) return "";
  const { answer } = asked.output;
  return typeof answer === "string"
    ? `Good to know: ${sentence(answer)} `
    : "Nobody answered, so I use my own judgement. ";
}

function keep(turn: Turn, content: string): Speech {
  const input = withStep({ path: "report.md", content: `${content}\n` }, stepFor(turn.plan, toSave));
  return called("It should be kept.", turn, "I'll save the comparison to report.md.", [
    { tool: "file.write", input },
  ]);
}

/** What was cut short by the redirection has found nothing out. */
function directed({ since }: Turn, instruction: string): Speech {
  const known = findingsIn(since).filter(({ ok }) => ok);
  const sofar =
    known.length === 0 ? "" : `\n\nSo far I know:\n\n${known.map(({ text }) => `- ${text}`).join("\n")}`;
  return {
    reasoning: `I was asked to change course: ${sentence(instruction)}`,
    text: `Understood: ${sentence(instruction)}${sofar}`,
    calls: [],
  };
}
