// What goes on right now, drawn again and again at the bottom of a terminal: thoughts, the row of text in the making,
// tools that run. The same timeline and time always give the same lines.

import { isFinal } from "@runwire/protocol";
import { harmless, oneLine } from "./harmless.js";
import type { Line, Span } from "./line.js";
import { cutLine, gutterOf, textLine } from "./lines.js";
import type { Manner, Timeline, Tool, Voice } from "./timeline.js";
import { durationWords, inputWords } from "./words.js";

const wheel = [..."⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"];
export const wheelMs = 100;

export function liveLines(timeline: Timeline, nowMs: number, manner: Manner): readonly Line[] {
  if (timeline.end !== null) return [];
  const spin: Span = { text: `${wheel[Math.floor(nowMs / wheelMs) % wheel.length]} `, style: "cyan" };
  const voices = [...timeline.voices.values()].filter(
    ({ label, state }) => label === "" || (manner.children === "show" && (state === null || !isFinal(state))),
  );
  const lines = voices.flatMap((voice) => doing(voice, spin, nowMs));
  if (lines.length > 0) return lines;
  const state = timeline.voices.get(timeline.run_id)?.state;
  if (timeline.asks.length > 0 || state == null) return [];
  if (state === "paused")
    return [cutLine("", { text: `⏸ paused; runwire resume ${timeline.run_id}`, style: "yellow" })];
  return [cutLine("", spin, { text: state.replace("_", " "), style: "dim" })];
}

function doing({ label, thinking, text, indent, tools }: Voice, spin: Span, nowMs: number): readonly Line[] {
  const lines: Line[] = [];
  if (thinking !== null) {
    const spans: Span[] = [
      { text: "∴ thinking  ", style: "dim" },
      { text: oneLine(thinking.text.slice(-400)), style: "dim" },
    ];
    lines.push({ gutter: gutterOf(label), spans, fit: "tail", hang: 0 });
  }
  if (text !== null && text !== "") {
    const row = textLine(label, harmless(text.slice(-400)).replaceAll("\n", " "), indent);
    lines.push(label === "" ? { ...row, fit: "cut" } : { ...row, fit: "tail" });
  }
  for (const tool of tools.values()) {
    if (tool.sinceMs !== null) lines.push(running(label, tool, tool.sinceMs, spin, nowMs));
  }
  return lines;
}

function running(
  label: string,
  { tool, input, streamed }: Tool,
  sinceMs: number,
  spin: Span,
  nowMs: number,
): Line {
  const note = oneLine(streamed.slice(-400).trimEnd().split("\n").at(-1) ?? "");
  return cutLine(
    label,
    spin,
    { text: oneLine(tool), style: "bold" },
    { text: ` ${inputWords(input)}` },
    { text: `  ${durationWords(nowMs - sinceMs)}`, style: "dim" },
    { text: note === "" ? "" : `  ${note}`, style: "dim" },
  );
}
