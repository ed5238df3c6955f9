// A line of the timeline before it is put on a terminal or into a pipe. What it says and how it looks are apart, so
// that the same line is plain in a pipe and coloured, wrapped or cut on a terminal.

import { type Cell, cellsOf } from "./width.js";

const codes = {
  bold: 1,
  dim: 2,
  red: 31,
  green: 32,
  yellow: 33,
  blue: 34,
  magenta: 35,
  cyan: 36,
} as const;
export type Style = keyof typeof codes;

export interface Span {
  readonly text: string;
  readonly style?: Style;
}

export interface Line {
  /** In front of every row. */
  readonly gutter: readonly Span[];
  readonly spans: readonly Span[];
  /** What happens to a line that is too long: more rows, its end or its beginning left out; a rule is drawn to the edge. */
  readonly fit: "wrap" | "cut" | "tail" | "rule";
  /** Where further rows begin. */
  readonly hang: number;
}

export interface Look {
  /** Null where nobody counts columns: a pipe or a file. */
  readonly columns: number | null;
  readonly colour: boolean;
}

interface StyledCell extends Cell {
  readonly style: Style | undefined;
}

const ruleWidthMax = 80;
const roomMin = 8;

export function layOut(line: Line, look: Look): readonly string[] {
  if (look.columns === null) {
    const end: readonly Span[] = line.fit === "rule" ? [{ text: " ──" }] : [];
    // Nothing is counted, so a span is as good as its cells.
    const whole = [...line.gutter, ...line.spans, ...end].map(({ text, style }) => ({
      text,
      width: 0,
      style,
    }));
    return [unspaced(paint(whole, look.colour))];
  }
  const gutter = fittingGutter(line, look.columns);
  const room = roomOf(line, look.columns);
  return rowsOf(line, room).map((row) => paint([...gutter, ...row], look.colour));
}

/** The last column stays free: terminals disagree on what writing into it does. */
export function roomOf(line: Pick<Line, "gutter">, columns: number): number {
  return Math.max(2, columns - 1 - cellsWidth(fittingGutter(line, columns)));
}

/** A gutter that would leave too little room is left out. */
function fittingGutter({ gutter }: Pick<Line, "gutter">, columns: number): readonly StyledCell[] {
  const cells = styled(gutter);
  return columns - 1 - cellsWidth(cells) < roomMin ? [] : cells;
}

function rowsOf({ spans, fit, hang }: Line, room: number): readonly (readonly StyledCell[])[] {
  const cells = styled(spans);
  switch (fit) {
    case "wrap":
      return wrap(cells, room, fittingHang(hang, room));
    case "cut":
      return [cut(cells, room)];
    case "tail": {
      const last = styled(spans.slice(-1));
      const first = cells.slice(0, cells.length - last.length);
      const left = room - cellsWidth(first);
      return [left < roomMin ? cut(cells, room) : [...first, ...cut(last.toReversed(), left).toReversed()]];
    }
    case "rule": {
      const kept = cut(cells, room);
      const left = Math.min(room, ruleWidthMax) - cellsWidth(kept) - 1;
      const rule = left > 0 ? styled([{ text: ` ${"─".repeat(left)}`, style: "dim" }]) : [];
      return [[...kept, ...rule]];
    }
  }
}

export function fittingHang(hang: number, room: number): number {
  return Math.min(hang, Math.max(0, room - roomMin));
}

/** The rows of running text. Together they are the text. */
export function wrapText(text: string, room: number): readonly string[] {
  return wrap(styled([{ text }]), room, 0).map((row) => row.map((cell) => cell.text).join(""));
}

/** Breaks after spaces where it can. */
function wrap(cells: readonly StyledCell[], room: number, hang: number): StyledCell[][] {
  const indent: StyledCell[] = Array.from({ length: hang }, () => ({
    text: " ",
    width: 1,
    style: undefined,
  }));
  const rows: StyledCell[][] = [];
  let row: StyledCell[] = [];
  let width = 0;
  for (const cell of cells) {
    // A space that no longer fits hangs over the edge, unseen. What is carried over may, indented, be too long again.
    while (width + cell.width > room && cell.text !== " ") {
      const margin = rows.length === 0 ? 0 : hang;
      if (row.length <= margin) break;
      const space = row.findLastIndex(({ text }, at) => text === " " && at >= margin);
      const isWord = space > margin + leading(row, margin);
      const rest = isWord ? row.slice(space + 1) : [];
      rows.push(isWord ? row.slice(0, space + 1) : row);
      row = [...indent, ...rest];
      width = cellsWidth(row);
    }
    row.push(cell);
    width += cell.width;
  }
  rows.push(row);
  return rows;
}

/** How many spaces a row begins with after its margin: breaking in them would make an empty row. */
function leading(row: readonly StyledCell[], margin: number): number {
  const first = row.findIndex(({ text }, i) => i >= margin && text !== " ");
  return first === -1 ? row.length : first - margin;
}

function cut(cells: readonly StyledCell[], room: number): readonly StyledCell[] {
  if (cellsWidth(cells) <= room) return cells;
  const kept: StyledCell[] = [];
  let width = 1;
  for (const cell of cells) {
    width += cell.width;
    if (width > room) break;
    kept.push(cell);
  }
  return [...kept, { text: "…", width: 1, style: kept.at(-1)?.style }];
}

function styled(spans: readonly Span[]): readonly StyledCell[] {
  return spans.flatMap(({ text, style }) => cellsOf(text).map((cell) => ({ ...cell, style })));
}

function cellsWidth(cells: readonly Cell[]): number {
  return cells.reduce((sum, { width }) => sum + width, 0);
}

function unspaced(text: string): string {
  let end = text.length;
  while (text[end - 1] === " ") end -= 1;
  return text.slice(0, end);
}

function paint(row: readonly StyledCell[], colour: boolean): string {
  const cells = row.slice(0, row.findLastIndex(({ text }) => text !== " ") + 1);
  let text = "";
  let style: Style | undefined;
  for (const cell of colour ? cells : cells.map((cell) => ({ ...cell, style: undefined }))) {
    if (cell.style !== style) {
      if (style !== undefined) text += "\u001b[0m";
      if (cell.style !== undefined) text += `\u001b[${codes[cell.style]}m`;
      style = cell.style;
    }
    text += cell.text;
  }
  return style === undefined ? text : `${text}\u001b[0m`;
}
