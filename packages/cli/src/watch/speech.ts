// What a run says and thinks, as it streams. Thinking is folded to one line when it is over; text becomes lines as
// they get complete.

import { growing, harmless, oneLine } from "./harmless.js";
import { fittingHang, type Line, roomOf, wrapText } from "./line.js";
import { blockOf, cutLine, gutterOf, hangOf, type Said, textLine } from "./lines.js";
import { type Manner, type Voice, withTool } from "./timeline.js";
import { durationWords } from "./words.js";

/** A line that is longer is put out in pieces. */
const lineCharsMax = 16 * 1024;
/** So many empty lines are held back; of more, the others are shown. */
const blankLinesMax = 2;
const thinkingCharsMax = 256 * 1024;
/** What is kept of a tool's own words while it runs. */
const streamedCharsMax = 64 * 1024;

export function think(voice: Voice, text: string, nowMs: number, manner: Manner): Said {
  const { voice: quiet, lines } = voice.text === null ? { voice, lines: [] } : flush(voice, nowMs, manner);
  const { text: before, sinceMs } = quiet.thinking ?? { text: "", sinceMs: nowMs };
  const kept = (before + text).slice(0, thinkingCharsMax);
  return { voice: { ...quiet, thinking: { text: kept, sinceMs } }, lines };
}

export function say(voice: Voice, text: string, nowMs: number, manner: Manner): Said {
  if (text === "") return { voice, lines: [] };
  const { voice: awake, lines: thought } = unthink(voice, nowMs, manner);
  // Before lines are told apart: other characters than `\n` break lines too.
  const { safe, open } = growing((awake.text ?? "") + text);
  const [last = "", ...complete] = safe.split("\n").toReversed();
  const lines: Line[] = [...thought];
  let { indent } = awake;
  // Empty lines wait for what they stand before: a text that ends with them has none below it.
  const blank = last + open === "" ? complete.findIndex((line) => line !== "") : 0;
  const held = Math.min(blank < 0 ? complete.length : blank, blankLinesMax);
  for (const line of complete.slice(held).toReversed()) {
    lines.push(...textLines(awake.label, line, indent));
    indent = null;
  }
  const quiet = { ...awake, indent, said: true };
  if (held > 0) return { voice: { ...quiet, text: "\n".repeat(held) }, lines };
  const cut = cutRows({ ...quiet, text: last + open }, manner);
  return { voice: cut.voice, lines: [...lines, ...cut.lines] };
}

/** Ends what it is saying or thinking. */
export function flush(voice: Voice, nowMs: number, manner: Manner): Said {
  const { voice: awake, lines } = unthink(voice, nowMs, manner);
  const { text, indent, label } = awake;
  if (text === null) return { voice: awake, lines };
  const rest = /^\n*$/.test(text) ? [] : textLines(label, text, indent);
  return { voice: { ...awake, text: null, indent: null }, lines: [...lines, ...rest] };
}

function unthink(voice: Voice, nowMs: number, { full }: Manner): Said {
  const { thinking, label } = voice;
  if (thinking === null) return { voice, lines: [] };
  const head = `∴ thought for ${durationWords(nowMs - thinking.sinceMs)}`;
  const rest = { ...voice, thinking: null };
  if (full) {
    const whole = blockOf(label, harmless(thinking.text), { mark: "  ", style: "dim" });
    return { voice: rest, lines: [cutLine(label, { text: head, style: "dim" }), ...whole] };
  }
  const gist = oneLine(thinking.text.slice(0, 400));
  return { voice: rest, lines: [cutLine(label, { text: `${head}  ${gist}`, style: "dim" })] };
}

/** Rows that nothing can change any more, so that what streams stays one row at the bottom. */
function cutRows(voice: Voice, { columns, live }: Manner): Said {
  const { label, text, indent } = voice;
  if (text === null) return { voice, lines: [] };
  // Children speak at the same time: their lines stay whole, or nobody could read them.
  const isLong = text.length > lineCharsMax;
  if (columns === null || !live || (label !== "" && !isLong)) {
    return isLong
      ? { voice: { ...voice, text: "" }, lines: textLines(label, text, indent) }
      : { voice, lines: [] };
  }
  const room = roomOf({ gutter: gutterOf(label) }, columns);
  const { safe, open } = growing(text);
  const lines: Line[] = [];
  let [rest, at] = [safe, indent];
  for (;;) {
    const [row = "", next] = wrapText(rest, room - (at ?? 0));
    if (next === undefined) return { voice: { ...voice, text: rest + open, indent: at }, lines };
    lines.push(textLine(label, row, at));
    at ??= fittingHang(hangOf(rest), room);
    rest = rest.slice(row.length);
  }
}

/** Carriage returns and the like may make several lines of one. */
function textLines(label: string, text: string, indent: number | null): readonly Line[] {
  return harmless(text.replace(/\r$/, ""))
    .split("\n")
    .map((line) => textLine(label, line, indent));
}

export function streamed(voice: Voice, call_id: unknown, text: string): Said {
  if (typeof call_id !== "string") return { voice, lines: [] };
  const before = voice.tools.get(call_id)?.streamed ?? "";
  const tools = withTool(voice, call_id, { streamed: (before + text).slice(-streamedCharsMax) });
  return { voice: { ...voice, tools }, lines: [] };
}
