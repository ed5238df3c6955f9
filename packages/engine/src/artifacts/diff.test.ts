import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { unifiedDiff } from "./diff.js";

/** A reader of unified diffs that knows nothing of how they are made. */
function patched(before: string, diff: string): string {
  const old = before === "" ? [] : before.split(/(?<=\n)/);
  const out: string[] = [];
  let next = 0;
  let lines: string[] = [];
  const take = (): void => {
    for (const line of lines) {
      const [kind, text] = [line[0], line.slice(1)];
      if (kind !== "+") expect(old[next++]).toBe(text);
      if (kind !== "-") out.push(text);
    }
    lines = [];
  };
  for (const line of diff.split(/(?<=\n)/).slice(2)) {
    const [, start, count] = /^@@ -(\d+),(\d+) \+\d+,\d+ @@\n$/.exec(line) ?? [];
    if (start !== undefined) {
      take();
      const from = Number(count) === 0 ? Number(start) : Number(start) - 1;
      out.push(...old.slice(next, from));
      next = from;
    } else if (line.startsWith("\\ ")) lines.push((lines.pop() ?? "").slice(0, -1));
    else lines.push(line);
  }
  take();
  return [...out, ...old.slice(next)].join("");
}

const texts = fc
  .tuple(
    fc.array(fc.constantFrom("a\n", "b\n", "c\n", "\n", "-\n", "@@ x\n"), { maxLength: 30 }),
    fc.constantFrom("", "end"),
  )
  .map(([lines, end]) => lines.join("") + end);

it("makes the new text of the old one, whatever they are", () => {
  fc.assert(
    fc.property(texts, texts, (before, after) => {
      const diff = unifiedDiff("x", before, after);
      if (before === after) expect(diff).toBeUndefined();
      else expect(patched(before, String(diff))).toBe(after);
    }),
  );
});

it("is no longer than it must be: one changed line of many takes a few lines", () => {
  const lines = Array.from({ length: 1000 }, (_, i) => `${i}\n`);
  const after = lines.with(500, "here\n").join("");
  expect(unifiedDiff("x", lines.join(""), after)).toBe(
    "--- a/x\n+++ b/x\n@@ -498,7 +498,7 @@\n 497\n 498\n 499\n-500\n+here\n 501\n 502\n 503\n",
  );
});

it("stays quick and true where nothing is the same", () => {
  const before = Array.from({ length: 4000 }, (_, i) => `old ${i}\n`).join("");
  const after = Array.from({ length: 4000 }, (_, i) => `new ${i}\n`).join("");
  const diff = unifiedDiff("x", before, after);
  expect(patched(before, String(diff))).toBe(after);
});

it("says that a file is new, and that it is gone", () => {
  expect(unifiedDiff("x", null, "one\n")).toBe("--- /dev/null\n+++ b/x\n@@ -0,0 +1,1 @@\n+one\n");
  expect(unifiedDiff("x", "one", null)).toBe(
    "--- a/x\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-one\n\\ No newline at end of file\n",
  );
});

it("is what git applies", () => {
  const folder = mkdtempSync(join(tmpdir(), "runwire-diff-"));
  try {
    fc.assert(
      fc.property(texts, texts, (before, after) => {
        fc.pre(before !== after && before !== "" && after !== "");
        writeFileSync(join(folder, "x"), before);
        const input = String(unifiedDiff("x", before, after));
        execFileSync("git", ["apply", "--unidiff-zero", "-"], { cwd: folder, input, stdio: "pipe" });
        expect(readFileSync(join(folder, "x"), "utf8")).toBe(after);
      }),
      { numRuns: 20 },
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});
