// The lines of a timeline, one function a kind.

import {
  beginningOf,
  broughtBy,
  type Facts,
  type Payloads,
  type Plan,
  type RunState,
} from "@runwire/protocol";
import { harmless, oneLine } from "./harmless.js";
import type { Line, Span, Style } from "./line.js";
import type { Manner, Timeline, Tool, Voice } from "./timeline.js";
import {
  durationWords,
  failureWords,
  inputWords,
  outputIn,
  outputWords,
  usageWords,
  wholeWords,
} from "./words.js";

/** What came of a run saying something. */
export interface Said {
  readonly voice: Voice;
  readonly lines: readonly Line[];
}

const childStyles = ["cyan", "magenta", "blue", "yellow", "green"] as const;

/** Children that run side by side are told apart by their number and its colour. */
export function gutterOf(label: string): readonly Span[] {
  if (label === "") return [];
  const style = childStyles[(Number.parseInt(label, 10) - 1) % childStyles.length] ?? "cyan";
  return [{ text: `  ${label} │ `, style }];
}

export function cutLine(label: string, ...spans: readonly Span[]): Line {
  return { gutter: gutterOf(label), spans, fit: "cut", hang: 0 };
}

/** `indent` is null for a whole line, and where it goes on for the rest of one. */
export function textLine(label: string, text: string, indent: number | null): Line {
  const spans = indent === null ? [{ text }] : [{ text: " ".repeat(indent) }, { text }];
  return { gutter: gutterOf(label), spans, fit: "wrap", hang: indent ?? hangOf(text) };
}

/** Items of a list go on under their text. */
export function hangOf(text: string): number {
  return Math.min(/^ *(?:[-*•] |\d{1,3}[.)] )?/.exec(text)?.[0].length ?? 0, 12);
}

/** Text of several lines, marked at its first. It is harmless already. */
export function blockOf(
  label: string,
  text: string,
  { mark = "", style }: { readonly mark?: string; readonly style?: Style },
): readonly Line[] {
  if (text.trim() === "") return [];
  const styled = (part: string): Span => (style === undefined ? { text: part } : { text: part, style });
  const margin = " ".repeat(mark.length);
  return text
    .trimEnd()
    .split("\n")
    .map((line, i) => ({
      gutter: gutterOf(label),
      spans: [styled(`${i === 0 ? mark : margin}${line}`)],
      fit: "wrap",
      hang: mark.length,
    }));
}

export function ruleOf(text: string): Line {
  return { gutter: [], spans: [{ text: `── ${text}`, style: "dim" }], fit: "rule", hang: 0 };
}

export function stateLine(label: string, state: RunState, reason: string | null | undefined): Line {
  const why = reason == null || reason === "" || reason === state ? "" : ` · ${oneLine(reason)}`;
  const style = state === "error" ? "red" : state === "paused" || state === "aborted" ? "yellow" : "cyan";
  return cutLine(label, { text: `● ${state.replace("_", " ")}`, style }, { text: why, style: "dim" });
}

export function toolLine(
  label: string,
  tool: Tool,
  child: string | null,
  end: Payloads["tool.end"],
  nowMs: number,
  manner: Manner,
): readonly Line[] {
  const tookMs = end.duration_ms ?? (tool.sinceMs === null ? null : nowMs - tool.sinceMs);
  const took = tookMs === null ? "" : ` ${durationWords(tookMs)}`;
  const mark: Span = end.ok ? { text: "✓ ", style: "green" } : { text: "✗ ", style: "red" };
  const name: Span = { text: child === null ? oneLine(tool.tool) : child, style: "bold" };
  const given = inputWords(tool.input);
  // What a child said stands above, line by line.
  const outcome = end.ok ? (child === null ? outputWords(outputIn(end)) : "") : failureWords(end.error);
  // What may be long comes last, so that a narrow terminal shows the rest.
  const head = cutLine(
    label,
    mark,
    name,
    { text: took, style: "dim" },
    { text: given === "" ? "" : `  ${given}` },
    { text: outcome === "" ? "" : `  → ${outcome}`, style: end.ok ? "dim" : "red" },
  );
  return manner.full ? [head, ...wholeTool(label, tool, child, end)] : [head];
}

function wholeTool(
  label: string,
  tool: Tool,
  child: string | null,
  end: Payloads["tool.end"],
): readonly Line[] {
  const parts: readonly (readonly [string, string])[] = [
    ["  in   ", wholeWords(tool.input)],
    ["  said ", tool.streamed],
    ["  out  ", child === null ? wholeWords(outputIn(end)) : ""],
    ["  blob ", end.blob_ref ?? ""],
  ];
  return parts.flatMap(([mark, text]) => blockOf(label, harmless(text), { mark, style: "dim" }));
}

export function planLines(label: string, plan: Plan, { full }: Manner): readonly Line[] {
  const costs = (usd: unknown): string => (typeof usd === "number" && usd > 0 ? `  $${usd}` : "");
  return [
    cutLine(label, { text: "Plan", style: "bold" }, { text: costs(plan.est_total_cost_usd), style: "dim" }),
    ...plan.steps.map((step): Line => {
      const { title, est_tools = [], est_cost_usd, intent } = step;
      const facts: Facts = { tools: est_tools.join(", "), ...(full ? { intent } : {}) };
      const told = Object.values(facts).filter((fact) => typeof fact === "string" && fact !== "");
      const aside = `${told.length === 0 ? "" : `  ${oneLine(told.join(" · "))}`}${costs(est_cost_usd)}`;
      const spans: Span[] = [{ text: `  ☐ ${oneLine(title)}` }, { text: aside, style: "dim" }];
      return { ...cutLine(label, ...spans), fit: "wrap", hang: 4 };
    }),
  ];
}

export function endLine(
  { title, usage, voices }: Timeline,
  state: RunState,
  reason: string | null | undefined,
  tookMs: number,
): readonly Line[] {
  const [mark, style] = ({ done: ["✓", "green"], error: ["✗", "red"] } as const)[state as "done"] ?? [
    "■",
    "yellow" as const,
  ];
  const why = reason == null || reason === "" ? "" : `: ${oneLine(reason)}`;
  const used = usageWords(usage);
  const children = voices.size - 1;
  const tree = children === 0 ? "" : `, with ${children} ${children === 1 ? "child" : "children"}`;
  return [
    {
      ...cutLine(
        "",
        { text: `${mark} ${state}${why}`, style },
        { text: ` in ${durationWords(tookMs)}` },
        {
          text: title === null ? "" : `  ${title}`,
          style: "dim",
        },
      ),
      fit: "wrap",
      hang: 2,
    },
    ...(used === ""
      ? []
      : [
          {
            ...cutLine("", { text: `  ${used}${tree}`, style: "dim" as const }),
            fit: "wrap" as const,
            hang: 2,
          },
        ]),
  ];
}

/** Of what a person asked: it may be a whole book. */
const askedCharsMax = 2000;

/** What a person asked, from the last message that is theirs. */
export function askedIn(submitted: Facts): string {
  const last = broughtBy(submitted).findLast(({ role }) => role === "user");
  const { content } = last ?? {};
  if (content == null) return "";
  return typeof content === "string" ? content : JSON.stringify(content);
}

export function askedLines(text: string, { full }: Manner): readonly Line[] {
  const shown = full || text.length <= askedCharsMax ? text : beginningOf(text, askedCharsMax);
  const untold = text.length - shown.length;
  const more = untold === 0 ? "" : `… (${untold.toLocaleString("en")} more)`;
  return blockOf("", `${harmless(shown)}${more}`, { mark: "> ", style: "bold" });
}
