// The difference of two texts, as `diff -u` writes it. The shortest edit script after Myers (1986): `reach[k]` is how far
// one gets in the old text on the diagonal k with d edits, and the way back through the reaches is the script. Two texts
// that differ in more lines than are worth looking at are one block, taken out and put in: true, if not short.

import { artifactLimits } from "./limits.js";

const contextLines = 3;

/** Null on either side: there is no such file. Undefined where the texts are the same. */
export function unifiedDiff(path: string, before: string | null, after: string | null): string | undefined {
  if (before === after) return undefined;
  const [a, b] = [linesOf(before ?? ""), linesOf(after ?? "")];
  const head = [
    before === null ? "--- /dev/null\n" : `--- a/${path}\n`,
    after === null ? "+++ /dev/null\n" : `+++ b/${path}\n`,
  ];
  return [...head, ...hunksOf(editsOf(a, b)).map(hunkText)].join("");
}

/** Each with the line break that it ends in; the last may have none. */
function linesOf(text: string): readonly string[] {
  return text === "" ? [] : text.split(/(?<=\n)/);
}

interface Edit {
  readonly kind: " " | "-" | "+";
  readonly line: string;
}

function editsOf(a: readonly string[], b: readonly string[]): readonly Edit[] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const same = (lines: readonly string[]): readonly Edit[] => lines.map((line) => ({ kind: " ", line }));
  return [
    ...same(a.slice(0, start)),
    ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...same(a.slice(a.length - end)),
  ];
}

function middle(a: readonly string[], b: readonly string[]): readonly Edit[] {
  const reaches = shortestWay(a, b);
  if (reaches === undefined)
    return [...a.map((line): Edit => ({ kind: "-", line })), ...b.map((line): Edit => ({ kind: "+", line }))];
  const back: Edit[] = [];
  let [x, y] = [a.length, b.length];
  for (let d = reaches.length - 1; d >= 0; d--) {
    const reach = reaches[d] as ReadonlyMap<number, number>;
    const k = x - y;
    const isDown = d > 0 && comesDown(reach, k, d);
    const fromX = d === 0 ? 0 : isDown ? at(reach, k + 1) : at(reach, k - 1) + 1;
    for (; x > fromX; x--, y--) back.push({ kind: " ", line: a[x - 1] as string });
    if (d === 0) break;
    if (isDown) back.push({ kind: "+", line: b[--y] as string });
    else back.push({ kind: "-", line: a[--x] as string });
  }
  return back.reverse();
}

/** For each number of edits, the reaches before it; undefined where there are too many. */
function shortestWay(
  a: readonly string[],
  b: readonly string[],
): readonly ReadonlyMap<number, number>[] | undefined {
  const reaches: ReadonlyMap<number, number>[] = [];
  let reach = new Map<number, number>();
  for (let d = 0; d <= Math.min(a.length + b.length, artifactLimits.diffEditsMax); d++) {
    reaches.push(reach);
    const next = new Map<number, number>();
    for (let k = -d; k <= d; k += 2) {
      let x = d === 0 ? 0 : comesDown(reach, k, d) ? at(reach, k + 1) : at(reach, k - 1) + 1;
      // Beyond the edge of either text there is nothing, and nobody comes from there.
      if (x < 0 || x > a.length || x - k > b.length) continue;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      next.set(k, x);
      if (x === a.length && x - k === b.length) return reaches;
    }
    reach = next;
  }
  return undefined;
}

function comesDown(reach: ReadonlyMap<number, number>, k: number, d: number): boolean {
  return k === -d || (k !== d && at(reach, k - 1) < at(reach, k + 1));
}

function at(reach: ReadonlyMap<number, number>, k: number): number {
  return reach.get(k) ?? Number.NEGATIVE_INFINITY;
}

interface Hunk {
  readonly oldStart: number;
  readonly newStart: number;
  readonly edits: readonly Edit[];
}

/** Changes with some lines around them; those that are close to each other are one. */
function hunksOf(edits: readonly Edit[]): readonly Hunk[] {
  const hunks: { oldStart: number; newStart: number; edits: Edit[]; lastChange: number }[] = [];
  let [oldLine, newLine] = [0, 0];
  const places = edits.map((edit) => {
    const place = { oldLine, newLine };
    if (edit.kind !== "+") oldLine += 1;
    if (edit.kind !== "-") newLine += 1;
    return place;
  });
  for (const [i, { kind }] of edits.entries()) {
    if (kind === " ") continue;
    const last = hunks.at(-1);
    const from = Math.max(0, i - contextLines);
    if (last !== undefined && from <= last.lastChange + contextLines + 1) {
      last.edits.push(...edits.slice(last.lastChange + 1, i + 1));
      last.lastChange = i;
      continue;
    }
    if (last !== undefined)
      last.edits.push(...edits.slice(last.lastChange + 1, last.lastChange + 1 + contextLines));
    const { oldLine: oldStart, newLine: newStart } = places[from] as (typeof places)[number];
    hunks.push({ oldStart, newStart, edits: edits.slice(from, i + 1), lastChange: i });
  }
  const last = hunks.at(-1);
  last?.edits.push(...edits.slice(last.lastChange + 1, last.lastChange + 1 + contextLines));
  return hunks;
}

function hunkText({ oldStart, newStart, edits }: Hunk): string {
  const oldLines = edits.filter(({ kind }) => kind !== "+").length;
  const newLines = edits.filter(({ kind }) => kind !== "-").length;
  // A side without lines stands after the line before it.
  const place = (start: number, lines: number): string => `${lines === 0 ? start : start + 1},${lines}`;
  const lines = edits.map(({ kind, line }) =>
    line.endsWith("\n") ? kind + line : `${kind}${line}\n\\ No newline at end of file\n`,
  );
  return [`@@ -${place(oldStart, oldLines)} +${place(newStart, newLines)} @@\n`, ...lines].join("");
}
