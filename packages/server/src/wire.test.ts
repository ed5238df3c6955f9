import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { runwire } from "@runwire/protocol";
import { describe, expect, it } from "vitest";
import { wire } from "./wire.js";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

describe("a large message", () => {
  const mebi = 1024 * 1024;

  it("leaves nothing behind when it is sent", async () => {
    const { frame } = wire(runwire, "ndjson", true);
    const before = process.memoryUsage().arrayBuffers;
    expect(frame([{ data: "x".repeat(20 * mebi) }]).length).toBeGreaterThan(20 * mebi);
    await expect
      .poll(() => {
        collectGarbage();
        return process.memoryUsage().arrayBuffers - before;
      })
      .toBeLessThan(8 * mebi);
  });

  it.each(["é", "\ud83d\ude00", "\ud800", "x"])("is whole, and so are those around it: %j", (unit) => {
    const { frame } = wire(runwire, "ndjson", false);
    const texts = ["small", unit.repeat(mebi), "after", unit.repeat(3 * mebi), ""];
    const said = frame(texts.map((data) => ({ data })));
    expect(said.equals(Buffer.from(texts.map((data) => `${data}\n`).join("")))).toBe(true);
  });
});
