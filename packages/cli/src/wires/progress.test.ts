import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { progress } from "./progress.js";

function drawn(isTTY: boolean, at: readonly (readonly [ms: number, bytes: number])[]): string {
  const folder = mkdtempSync(join(tmpdir(), "runwire-progress-"));
  const file = join(folder, "input");
  writeFileSync(file, Buffer.alloc(4_000_000));
  let nowMs = 0;
  let text = "";
  const write = (piece: string): boolean => {
    text += piece;
    return true;
  };
  const shown = progress(file, { isTTY, write } as NodeJS.WriteStream, () => nowMs);
  for (const [ms, bytes] of at) {
    nowMs = ms;
    shown.at(bytes);
  }
  shown.clear();
  rmSync(folder, { recursive: true });
  return text;
}

describe("progress", () => {
  it("is shown of long work, a few times a second, and taken away again", () => {
    const text = drawn(true, [
      [500, 500_000],
      [1000, 1_000_000],
      [1100, 1_100_000],
      [2000, 2_000_000],
    ]);
    const erase = "\r\u001b[K";
    expect(text).toBe(`${erase}1 MB of 4 MB, 25 %, 1 MB/s${erase}2 MB of 4 MB, 50 %, 1 MB/s${erase}`);
  });

  it("is not shown of short work, and only on a terminal", () => {
    expect(drawn(true, [[900, 4_000_000]])).toBe("");
    expect(drawn(false, [[5000, 4_000_000]])).toBe("");
  });
});
