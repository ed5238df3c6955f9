import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { sessionLines } from "./session-lines.js";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

it("a line that comes byte by byte holds its bytes, and not what was read with them", async () => {
  const reader = sessionLines(1024);
  const before = process.memoryUsage().arrayBuffers;
  const pieces = 300;
  for (let i = 0; i < pieces; i++) {
    const read = Buffer.allocUnsafeSlow(1024 * 1024).fill("a", 0, 1);
    expect(reader.push(read.subarray(0, 1))).toEqual({ lines: [] });
  }
  await expect
    .poll(() => {
      collectGarbage();
      return process.memoryUsage().arrayBuffers - before;
    })
    .toBeLessThan(20 * 1024 * 1024);
  expect(reader.push(Buffer.from("\n"))).toEqual({ lines: ["a".repeat(pieces)] });
});
