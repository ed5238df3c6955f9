// What goes on right now, drawn again and again at the bottom of a terminal: thoughts, the row of text in the making,
// tools that run. The same timeline and time always give the same lines.

import { isFinal } from "@runwire/protocol";
import { harmless, oneLine } from "./harmless.js";
import type { Line, Span } from "./line.js";
import { cutLine, gutterOf, textLine } from "./lines.js";
import type { Manner, Timeline, Voice } from "./timeline.js";
import { durationWords, inputWords } from "./words.js";

const wheel = [..."⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"];
export const wheelMs = 100;
/** Of what streams: more is never seen. */
const tailCharsMax = 400;

export function liveLines(timeline: Timeline, nowMs: number, manner: Manner): readonly Line[] {
  if (timeline.end !== null) return [];
  const spin: Span = { text: `${wheel[Math.floor(nowMs / wheelMs) % wheel.length]} `, style: "cyan" };
  const voices = [...timeline.voices.values()].filter(
    ({ label, state }) => label === "" || (manner.children === "show" && (state === null || !isFinal(state))),
  );
  const lines = voices.flatMap((voice) => doing(timeline, voice, spin, nowMs));
  if (lines.length > 0) return lines;
  const state = timeline.voices.get(timeline.run_id)?.state;
  if (timeline.asks.length > 0 || state == null) return [];
  if (state === "paused")
    return [cutLine("", { text: `⏸ paused; runwire resume ${timeline.run_id}`, style: "yellow" })];
  return [cutLine("", spin, { text: state.replace("_", " "), style: "dim" })];
}

function doing(timeline: Timeline, voice: Voice, spin: Span, nowMs: number): readonly Line[] {
  const { label, thinking, text, indent, tools } = voice;
  const lines: Line[] = [];
  if (thinking !== null) {
    const spans: Span[] = [
      { text: "∴ thinking  ", style: "dim" },
      { text: oneLine(thinking.text.slice(-tailCharsMax)), style: "dim" },
    ];
    lines.push({ gutter: gutterOf(label), spans, fit: "tail", hang: 0 });
  }
  if (text !== null && text.trim() !== "") {
    const row = textLine(label, harmless(text.slice(-tailCharsMax)).replaceAll("\n", " "), indent);
    lines.push(label === "" ? { ...row, fit: "cut" } : { ...row, fit: "tail" });
  }
  for (const { tool, child, input, streamed, sinceMs } of tools.values()) {
    if (sinceMs === null) continue;
    const name = (child === null ? undefined : timeline.voices.get(child)?.label) ?? oneLine(tool);
    const note = oneLine(streamed.slice(-tailCharsMax).trimEnd().split("\n").at(-1) ?? "");
    lines.push(
      cutLine(
        label,
        spin,
        { text: name, style: "bold" },
        { text: ` ${durationWords(nowMs - sinceMs)}`, style: "dim" },
        { text: `  ${inputWords(input)}` },
        { text: note === "" ? "" : `  ${note}`, style: "dim" },
      ),
    );
  }
  return lines;
}
