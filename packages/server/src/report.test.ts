import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { linesTo, reportTo, stackOf } from "./report.js";

/** A reader that takes nothing until it is told to. */
function stalled(): { stream: Writable; taken: string[]; takeAll(): void } {
  const taken: string[] = [];
  let next: (() => void) | undefined;
  let flows = false;
  const stream = new Writable({
    write(chunk, _encoding, done) {
      taken.push(String(chunk));
      if (flows) done();
      else next = done;
    },
  });
  return {
    stream,
    taken,
    takeAll() {
      flows = true;
      next?.();
    },
  };
}

const untilDrained = (stream: Writable): Promise<void> =>
  new Promise((resolve) => stream.write("", () => resolve()));

describe("a log that nobody reads", () => {
  it("costs lines and not memory, and tells how many when it is read again", async () => {
    let dropped = 0;
    const { stream, taken, takeAll } = stalled();
    const report = reportTo(
      linesTo(stream, (lines) => {
        dropped += lines;
      }),
      "info",
      () => 0,
    );
    const lines = 40;
    for (let i = 0; i < lines; i++) report("info", "x".repeat(100_000));
    expect(stream.writableLength).toBeLessThan(1_300_000);
    expect(dropped).toBeGreaterThan(0);
    takeAll();
    await untilDrained(stream);
    report("warn", "back");
    const said = taken.filter((line) => line !== "").map((line) => JSON.parse(line) as { what: string });
    expect(said.at(-1)).toMatchObject({ what: "back" });
    expect(said.at(-2)).toMatchObject({
      what: "log lines dropped",
      level: "warn",
      lines: lines - (said.length - 2),
    });
  });
});

describe("a log that is closed", () => {
  it("costs lines and not the server, however many gateways write to it", async () => {
    let dropped = 0;
    const broken = new Writable({
      autoDestroy: false,
      write: (_chunk, _encoding, done) => done(new Error("EPIPE")),
    });
    const count = (lines: number): void => {
      dropped += lines;
    };
    const first = linesTo(broken, count);
    const second = linesTo(broken, count);
    for (let i = 0; i < 5; i++) first("a\n");
    second("b\n");
    await expect.poll(() => dropped).toBe(6);
    expect(broken.listenerCount("error")).toBe(1);
  });
});

describe("a report", () => {
  it("leaves out what is less urgent than was asked for", () => {
    const lines: string[] = [];
    const report = reportTo(
      (line) => lines.push(line) > 0,
      "warn",
      () => 0,
    );
    report("error", "a");
    report("warn", "b", { fact: 1 });
    report("info", "c");
    report("debug", "d");
    expect(lines.map((line) => JSON.parse(line))).toEqual([
      { ts: "1970-01-01T00:00:00.000Z", level: "error", what: "a" },
      { ts: "1970-01-01T00:00:00.000Z", level: "warn", what: "b", fact: 1 },
    ]);
  });

  it("says where a bug is, without what a parser quotes of its text", () => {
    const quoting = (): unknown => JSON.parse('{"password":hunter2}');
    let caught: unknown;
    try {
      quoting();
    } catch (error) {
      caught = error;
    }
    expect(String(caught)).toContain("hunter2");
    expect(stackOf(caught)).not.toContain("hunter2");
    expect(stackOf(caught)).toContain("report.test");
    expect(stackOf(new TypeError("x is not a function"))).toContain("x is not a function");
    expect(stackOf("hunter2")).toBe("string");
  });
});
