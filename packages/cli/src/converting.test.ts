import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Dialect, dialects, koder, runwire as log, logReader, logWriter, loom } from "@runwire/protocol";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { bin, linesOf, objectsOf, pipe, runwire, start, startOnTerminal } from "./testing/command.js";
import { sampleEvents, sampleLines, sampleRun } from "./testing/sample.js";

const isSoak = process.env.RUNWIRE_SOAK !== undefined;
const folder = mkdtempSync(join(tmpdir(), "runwire-convert-"));
const spoken = [...dialects.values()];

afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join("");

function converted(from: Dialect, to: Dialect): readonly string[] {
  const [reader, writer] = [logReader(from), logWriter(to)];
  const events = sampleLines(from).flatMap((line) => reader.read(line));
  return events.flatMap((e) => writer.say(e).map(({ data }) => data));
}

describe("runwire convert", () => {
  it.each(spoken)("of $name to runwire and back gives the same file", async (dialect) => {
    const path = file(`run.${dialect.name}`, text(sampleLines(dialect)));
    const [there, back] = [join(folder, "there"), join(folder, "back")];
    const from = await runwire(["convert", "--from", dialect.name, "--to", "runwire", path, "-o", there]);
    expect(from).toMatchObject({ code: 0, out: "" });
    expect(from.err).toMatch(/: \d+ lines, 0 bad, 1 run\n$/);
    await runwire(["convert", "--from", "runwire", "--to", dialect.name, there, "-o", back]);
    expect(readFileSync(back, "utf8")).toBe(text(converted(dialect, dialect)));
    if (typeof dialect.cursor === "string")
      expect(readFileSync(back, "utf8")).toBe(readFileSync(path, "utf8"));
  });

  it("reads a pipe, tells of each bad line by its number, and does the others", async () => {
    const lines = sampleLines(loom);
    const mixed = [lines[0], "{", "", '{"type":"node_enter"}', "[]", ...lines.slice(1)] as string[];
    const { code, out, err } = await pipe(text(mixed), ["convert", "--from", "loom", "--to", "loom"]);
    expect(code).toBe(1);
    expect(linesOf(out)).toEqual(lines);
    expect(err).toBe(
      [
        "stdin:2: KAI-STREAM-PROTO-0001: malformed event: not JSON",
        "stdin:4: KAI-STREAM-PROTO-0001: malformed event: node_enter: `id` must be a string",
        "stdin:5: KAI-STREAM-PROTO-0001: malformed event: a message must be a JSON object",
        `stdin: ${mixed.length} lines, 3 bad, 1 run`,
        "",
      ].join("\n"),
    );
  });

  it("makes several logs of several runs", async () => {
    const other = "run_01K0000000000000000000000B";
    const { out, err } = await pipe(text([...sampleLines(loom), ...sampleLines(loom, other)]), [
      ...["convert", "--from", "loom", "--to", "koder"],
    ]);
    const events = objectsOf<{ run_id: string; seq: number }>(out);
    expect(events.filter(({ seq }) => seq === 1).map(({ run_id }) => run_id)).toEqual([sampleRun, other]);
    expect(err).toContain("2 runs");
  });

  it("leaves no file behind that is not whole", async () => {
    const target = join(folder, "whole");
    writeFileSync(target, "before");
    const args = ["convert", "--from", "loom", "--to", "loom", "-o", target];
    const cut = start(args);
    cut.type(text(sampleLines(loom)));
    const isBegun = (): boolean => readdirSync(folder).some((name) => name.startsWith("whole."));
    while (!isBegun()) await new Promise((resolve) => setImmediate(resolve));
    expect(readFileSync(target, "utf8")).toBe("before");
    cut.kill("SIGINT");
    expect((await cut.exited).code).toBe(130);
    expect(isBegun()).toBe(false);
    expect(readFileSync(target, "utf8")).toBe("before");
    expect((await pipe(text(sampleLines(loom)), args)).code).toBe(0);
    expect(readFileSync(target, "utf8")).toBe(text(sampleLines(loom)));
  });

  it.each([
    [["convert", "--from", "loom", "--to", "koder", "nowhere"], "nowhere: there is no such file"],
    [["convert", "--from", "loom", "--to", "koder", "."], "it is a folder"],
    [["convert", "--from", "loom", "--to", "koder", "-o", "."], "runwire: .: it is a folder"],
    [
      ["convert", "--from", "loom", "--to", "koder", "-o", "none/x"],
      "runwire: none/x: there is no such folder",
    ],
    [["convert", "--from", "loom", "--to", "koder", "-o", ""], "runwire: --output: it is empty"],
    [["convert", "--from", "latin", "--to", "koder"], "koder, runwire"],
    [["convert", "--from", "loom", "--to", "koder", "no\nsuch\u001b[31m"], "runwire: no such: there is no"],
    [["validate", "--dialect", "koder", "--profile", "strict"], "koder has no profile strict"],
    [["replay", "run_nowhere", "--url", "http://127.0.0.1:9"], "no server answers"],
    [["replay", "-", "--speed", "0"], "--speed"],
    [["replay", "-", "--from-step", "x"], "--from-step"],
    [["replay", "-", "--dialect", "loom"], "--json"],
  ])("and the others say in one line what is wrong with %j", async (args, named) => {
    const { code, out, err } = await runwire(args);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err.trim().split("\n")).toHaveLength(1);
    expect(err).toContain(named);
  });
});

describe("runwire validate", () => {
  it.each(spoken)("finds nothing wrong with $name as it is said here", async (dialect) => {
    const lines = sampleLines(dialect);
    const { code, out, err } = await pipe(text(lines), ["validate", "--dialect", dialect.name]);
    expect({ code, out, err }).toEqual({ code: 0, out: "", err: `stdin: ${lines.length} lines, 0 bad\n` });
  });

  it("keeps a file's name on its line", async () => {
    const path = file("two\nlines\u001b[31m", text(sampleLines(loom)));
    const { err } = await runwire(["validate", "--dialect", "loom", path]);
    expect(err).toBe(`${join(folder, "two lines")}: ${sampleLines(loom).length} lines, 0 bad\n`);
  });

  it("names the line, the rule and what is wrong, and ends with 1", async () => {
    const lines = sampleLines(loom);
    const path = file(
      "wrong.loom",
      text([...lines.slice(0, 2), '{"type":"node_exit","id":"x","result":"Ok"}', "{"]),
    );
    expect(await runwire(["validate", "--dialect", "loom", path])).toEqual({
      code: 1,
      out: [
        `${path}:3: LOOM-SPAN: "x" is left, and was not entered`,
        `${path}:4: LOOM-JSON: it is not JSON`,
        `${path}:4: LOOM-END: there is no reply: the run was cut off`,
        "",
      ].join("\n"),
      err: `${path}: 4 lines, 2 bad\n`,
    });
  });

  it("asks for more under a profile", async () => {
    const thread =
      '{"type":"thread.started","eventId":"e","timestamp":"2026-01-01T00:00:00Z","sequence":1}\n';
    const args = ["validate", "--dialect", "runtime"];
    expect(await pipe(thread, args)).toMatchObject({ code: 0, out: "" });
    const { code, out } = await pipe(thread, [...args, "--profile", "strict"]);
    expect({ code, out }).toEqual({ code: 1, out: expect.stringMatching(/^stdin:1: RT-STRICT-/) });
  });

  it("knows that each run has numbers of its own, and is coloured on a terminal only", async () => {
    const other = sampleLines(koder, "run_01K0000000000000000000000B");
    const path = file("two.koder", text([...sampleLines(koder), ...other, other[0] as string]));
    const { code, out } = await startOnTerminal(["validate", "--dialect", "koder", path]).exited;
    expect(code).toBe(1);
    expect(out).toContain(`${path}:${2 * other.length + 1}: \u001b[31mRW-CURSOR-1\u001b[0m`);
  });
});

describe("runwire replay of a file", () => {
  it.each(spoken)("knows $name by its looks, and says it in any other", async (dialect) => {
    const path = file(`replay.${dialect.name}`, text(sampleLines(dialect)));
    const said = await runwire(["replay", path, "--speed", "max", "--json", "--dialect", "loom"]);
    expect(said).toEqual({ code: 0, out: text(converted(dialect, loom)), err: "" });
  });

  it("shows a run of Loom with what it was asked and what its tools were given", async () => {
    const { code, out, err } = await pipe(text(sampleLines(loom)), ["replay", "-"]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const lines = ["> Tidy up", "· shell ls", "✓ shell 0.0 s  ls  → a b", "✓ done in 0.0 s"];
    expect(linesOf(out)).toEqual(expect.arrayContaining(lines));
  });

  it.each(["none.jsonl", "./none", join(folder, "none.loom")])("says that there is no %s", async (path) => {
    expect(await runwire(["replay", path])).toMatchObject({
      code: 1,
      err: `runwire: ${path}: there is no such file\n`,
    });
  });

  it("begins with a step, where it was asked to", async () => {
    const args = ["replay", "-", "--speed", "max", "--from-step", "1", "--json"];
    const { out } = await pipe(text(sampleLines(log)), args);
    expect(linesOf(out)).toEqual(sampleLines(log).slice(10));
  });

  it("keeps to the times of the run, and is left with Ctrl-C", async () => {
    const path = file("slow", text(sampleLines(log)));
    const replay = start(["replay", path, "--json", "--speed", "4x"]);
    await replay.until(/"pos":3/);
    expect(await replay.kill("SIGINT")).toMatchObject({
      code: 130,
      out: expect.not.stringContaining('"pos":16'),
    });
  });
});

/** A line with something done to it. Line breaks stay out, so that numbers are known. */
const mutation = fc.oneof(
  fc.tuple(fc.nat(), fc.constantFrom(...'{}[]":,\\x0-e\u0000é'.split(""))).map(
    ([at, char]) =>
      (line: string) =>
        cutLine(line, at, 1, char),
  ),
  fc.tuple(fc.nat(), fc.nat(40)).map(
    ([at, count]) =>
      (line: string) =>
        cutLine(line, at, count, ""),
  ),
  fc.nat().map((at) => (line: string) => line.slice(0, at % (line.length + 1))),
  fc.nat().map((at) => (line: string) => cutLine(line, at, 0, line.slice(0, 30))),
  fc.constantFrom("null", "[]", "1e999", '{"a":{}}', "true", '"x"', "-1", "[".repeat(5000)).chain((value) =>
    fc.nat().map((at) => (line: string) => {
      const members = [...line.matchAll(/:("[^"]*"|[0-9]+|null|true|false)/g)];
      const { index = 0, 0: whole = "" } = members[at % Math.max(1, members.length)] ?? {};
      return cutLine(line, index, whole.length, `:${value}`);
    }),
  ),
);

function cutLine(line: string, at: number, count: number, put: string): string {
  const from = at % (line.length + 1);
  return line.slice(0, from) + put + line.slice(from + count);
}

function isObjectText(line: string): boolean {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

describe("lines that were damaged", () => {
  it.each(spoken)("of $name never stop a command, and each is told of by its number", async (dialect) => {
    const count = Math.ceil((isSoak ? 100_000 : 2000) / spoken.length);
    const lines = sampleLines(dialect);
    const seed = Math.floor(Math.random() * 2 ** 31);
    const damaged = fc
      .sample(mutation, { numRuns: count, seed })
      .map((mutate, i) => mutate(lines[i % lines.length] as string).replaceAll("\n", ""));
    const path = file("damaged", text(damaged));
    const expected = damaged.flatMap((line, i) => (line.trim() === "" || isObjectText(line) ? [] : [i + 1]));
    expect(expected.length).toBeGreaterThan(count / 10);
    const converted = await runwire(["convert", "--from", dialect.name, "--to", "runwire", path]);
    const validated = await runwire(["validate", "--dialect", dialect.name, path]);
    for (const { code, told, err } of [
      { ...converted, told: converted.err },
      { ...validated, told: validated.out },
    ]) {
      expect(code, `seed ${seed}: ${err.slice(-400)}`).toBe(1);
      const numbers = linesOf(told).flatMap(
        (line) => /^.*damaged:(\d+): [A-Z0-9-]+: ./.exec(line)?.[1] ?? [],
      );
      const isTold = new Set(numbers.map(Number));
      expect(
        expected.filter((number) => !isTold.has(number)),
        `seed ${seed}`,
      ).toEqual([]);
      expect(err).toMatch(
        new RegExp(`: ${count.toLocaleString("en")} lines, [\\d,]+ bad(, [\\d,]+ runs?)?\n$`),
      );
    }
    // What was made of the others is a log.
    for (const line of linesOf(converted.out)) expect(isObjectText(line)).toBe(true);
  });
});

describe("a conversion", () => {
  it("takes no more memory for a long input than for a short one", async () => {
    const bytesMin = isSoak ? 1_000_000_000 : 40_000_000;
    // Whatever piled up would not fit.
    const args = ["--max-old-space-size=48", bin, "convert", "--from", "runwire", "--to", "loom"];
    const child = spawn(process.execPath, args);
    let outBytes = 0;
    let rssKb = 0;
    let err = "";
    child.stderr.setEncoding("utf8").on("data", (told: string) => {
      err += told;
    });
    child.stdout.on("data", (piece: Uint8Array) => {
      outBytes += piece.length;
    });
    const exited = once(child, "exit");
    let inBytes = 0;
    for (let run = 0; inBytes < bytesMin; run++) {
      const run_id = `run_${run}`;
      const padding = "x".repeat(2000);
      const piece = sampleEvents(run_id)
        .flatMap((e) => {
          const payload = e.type === "text.delta" ? { text: padding } : e.payload;
          return logWriter(log).say({ ...e, payload } as typeof e);
        })
        .map(({ data }) => `${data}\n`)
        .join("");
      inBytes += piece.length;
      if (!child.stdin.write(piece)) await once(child.stdin, "drain");
      const status = `/proc/${child.pid}/status`;
      if (run % 500 === 0 && existsSync(status))
        rssKb = Math.max(rssKb, Number(/VmHWM:\s+(\d+)/.exec(readFileSync(status, "utf8"))?.[1] ?? 0));
    }
    child.stdin.end();
    expect(await exited).toEqual([0, null]);
    expect(err).toContain(" 0 bad");
    expect(outBytes).toBeGreaterThan(inBytes / 2);
    expect(rssKb).toBeLessThan(220_000);
  }, 600_000);
});
