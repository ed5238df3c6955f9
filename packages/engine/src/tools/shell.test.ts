import { closeSync, existsSync, openSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeOf, type TestContext, testContext } from "../testing/context.js";
import { excerptOf } from "./excerpt.js";
import { toolLimits } from "./limits.js";
import { shellTool } from "./shell.js";

const tool = shellTool();
let context: TestContext;
beforeEach(() => {
  context = testContext();
});
afterEach(() => context.remove());

const run = async (command: string, timeout_s?: number) => {
  const { output, kind } = await outcomeOf(tool, { command, timeout_s }, context);
  return { ...output, kind } as {
    readonly exit_code: number | null;
    readonly output: string;
    readonly timed_out: boolean;
    readonly signal: string | null;
    readonly left_out_bytes: number;
    readonly kind: string | null;
  };
};

/** Processes whose folder is the workspace, the dead ones that nobody has buried left out. */
function running(): readonly string[] {
  return readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid))
    .filter((pid) => {
      try {
        return realpathSync(`/proc/${pid}/cwd`) === context.workspace;
      } catch {
        return false;
      }
    });
}

async function nothingRuns(): Promise<void> {
  // A killed process is gone when the kernel gets to it.
  await expect.poll(running, { interval: 5 }).toEqual([]);
}

const written = (name: string) =>
  expect.poll(() => existsSync(join(context.workspace, name)), { interval: 5 }).toBe(true);

describe("a command", () => {
  it.each([
    ["exit 3", {}, { kind: "completed", exit_code: 3 }],
    ["kill -TERM $$", {}, { kind: "terminated", signal: "SIGTERM", reason: "signal" }],
    ["sleep 60", { timeout_s: 0.05 }, { kind: "terminated", reason: "timeout" }],
  ])("is told of as a process, and how that ended: %s", async (command, more, end) => {
    await outcomeOf(tool, { command, ...more }, context);
    expect(context.processes).toMatchObject([{ command, cwd: ".", pid: expect.any(Number), end }]);
  });

  it("that has to stop is told to have been stopped", async () => {
    const result = tool.run({ command: "touch began; sleep 60" }, context);
    await written("began");
    context.abort();
    await expect(result).rejects.toThrow();
    expect(context.processes).toMatchObject([{ end: { kind: "terminated", reason: "aborted" } }]);
  });

  it("has the time that it is given, and not the one that it has by itself", async () => {
    const unhurried = run("sleep 1000");
    expect(await run("sleep 1000", 0.4)).toMatchObject({ timed_out: true });
    expect(context.processes).toMatchObject([{ end: null }, { end: { reason: "timeout" } }]);
    context.abort();
    await expect(unhurried).rejects.toThrow("aborted");
  });

  it("runs in the workspace, and says what it prints as it prints it", async () => {
    const result = run("pwd; echo err >&2; until [ -e go ]; do sleep 0.01; done; echo after; exit 3");
    await expect.poll(() => context.said.join(""), { interval: 5 }).toContain("err\n");
    expect(context.said.join("")).toContain(`${context.workspace}\n`);
    await outcomeOf(tool, { command: "touch go" }, context);
    const { exit_code, output, timed_out } = await result;
    expect({ exit_code, timed_out }).toEqual({ exit_code: 3, timed_out: false });
    expect(output).toBe(context.said.join(""));
    expect(output.endsWith("after\n")).toBe(true);
  });

  it("knows nothing of this process but where it is", async () => {
    process.env.RUNWIRE_TEST_KEY = "secret";
    const { output } = await run("env; readlink /proc/$$/fd/0");
    delete process.env.RUNWIRE_TEST_KEY;
    const lines = output.trim().split("\n").sort();
    expect(lines.filter((line) => !/^(PWD|OLDPWD|SHLVL|_)=/.test(line))).toEqual([
      "/dev/null",
      `HOME=${context.workspace}`,
      "LANG=C.UTF-8",
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ]);
  });

  it("has no files of this process open", async () => {
    const file = openSync(join(context.outside, "ours"), "w");
    const { output } = await run("ls -l /proc/$$/fd");
    closeSync(file);
    expect(output).toContain("/dev/null");
    expect(output).not.toContain("ours");
  });

  it("that fails or is killed says how", async () => {
    expect(await run("no-such-command")).toMatchObject({ exit_code: 127, kind: null });
    expect(await run("kill -9 $$")).toMatchObject({ exit_code: null, signal: "SIGKILL", timed_out: false });
    expect(await run("true", 0.5)).toMatchObject({ exit_code: 0, output: "" });
  });

  it("ends when its reader has had enough: yes | head", async () => {
    expect(await run("yes | head -3")).toMatchObject({ exit_code: 0, output: "y\ny\ny\n" });
  });

  it("that prints anything but text is told as text", async () => {
    const { output } = await run("printf '\\377\\000a\\303'; sleep 0.01; printf '\\244'");
    expect(output).toBe("\ufffd\0aä");
  });

  it("that prints without end is cut in the middle, and shown no longer than it may be", async () => {
    const result = await run("echo first; head -c 10000000 /dev/zero | tr '\\0' x; echo; echo last");
    expect(result.exit_code).toBe(0);
    expect(result.output.startsWith("first\nxxx")).toBe(true);
    expect(result.output.endsWith("xxx\nlast\n")).toBe(true);
    expect(result.left_out_bytes).toBe(10_000_012 - toolLimits.shellHeadBytes - toolLimits.shellTailBytes);
    expect(result.output).toContain(`[… ${result.left_out_bytes} bytes left out …]`);
    expect(Buffer.byteLength(context.said.join(""))).toBeLessThan(toolLimits.shellSaidBytesMax + 100);
    expect(context.said.at(-1)).toContain("not shown");
  });

  it("cannot be started without its workspace", async () => {
    context.remove();
    expect(await run("true")).toMatchObject({ kind: "failed" });
  });

  it.each([
    {},
    { command: "" },
    { command: "a\0b" },
    { command: "a", timeout_s: 0 },
    { command: "a", timeout_s: 601 },
  ])("is not run from %j", async (input) =>
    expect(await outcomeOf(tool, input, context)).toMatchObject({ kind: "invalid-input" }),
  );
});

// Commands and the time they are given last longer than a test may: whatever waits for either fails it.
describe("nothing is left running", () => {
  const longS = 600;
  const stubborn: readonly (readonly [string, string])[] = [
    ["a sleep", "touch up; sleep 1000"],
    ["one that ignores SIGTERM", "trap '' TERM; touch up; while :; do sleep 1000; done"],
    ["a grandchild that ignores SIGTERM", "sh -c \"trap '' TERM; touch up; sleep 1000; sleep 1000\" & wait"],
    [
      "a grandchild that has closed its output",
      "(exec >&- 2>&-; trap '' TERM; touch up; sleep 1000; sleep 1000) & wait",
    ],
    ["one that prints all the time", "touch up; trap '' TERM; yes"],
    ["a pipeline", "touch up; sleep 1000 | sleep 1000 | cat"],
    ["one that makes ever new ones", "trap '' TERM; touch up; while :; do sleep 0.01 & sleep 0.01; done"],
  ];

  it.each(stubborn)("of %s, once the time is over", async (_, command) => {
    const { timed_out, exit_code } = await run(command, 0.4);
    expect({ timed_out, exit_code }).toEqual({ timed_out: true, exit_code: null });
    await nothingRuns();
  });

  it.each(stubborn)("of %s, once the call is called off", async (_, command) => {
    const result = run(command, longS);
    await written("up");
    context.abort();
    await expect(result).rejects.toThrow("aborted");
    await nothingRuns();
  });

  it.each([
    ["in the background", "sleep 1000 & echo done"],
    [
      "in the background and stubborn",
      "sh -c \"trap '' TERM; touch up; sleep 1000; sleep 1000\" & until [ -e up ]; do :; done; echo done",
    ],
    ["in the background without output", "sleep 1000 >/dev/null 2>&1 & echo done"],
  ])("%s, when the command itself is done", async (_, command) => {
    const { exit_code, output } = await run(command, longS);
    expect({ exit_code, output }).toEqual({ exit_code: 0, output: "done\n" });
    await nothingRuns();
  });

  it("is not waited for, when it has left the group and holds the pipe", async () => {
    const { exit_code } = await run(
      "setsid sh -c 'echo $$ > pid; exec sleep 1000' & until [ -s pid ]; do :; done",
      longS,
    );
    process.kill(Number(readFileSync(join(context.workspace, "pid"), "utf8")), "SIGKILL");
    expect(exit_code).toBe(0);
  });

  it("is asked before it is made to: one that cleans up gets to", async () => {
    await run("trap 'echo cleaned > cleaned; exit 0' TERM; while :; do sleep 0.01; done", 0.2);
    expect(readFileSync(join(context.workspace, "cleaned"), "utf8")).toBe("cleaned\n");
  });

  it("of a call that was called off before it began", async () => {
    context.abort();
    await expect(run("touch begun")).rejects.toThrow("aborted");
    expect(existsSync(join(context.workspace, "begun"))).toBe(false);
  });
});

describe("what is kept of a long text", () => {
  it("is its beginning and its end, whatever the pieces it comes in", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ maxLength: 30 })),
        fc.nat({ max: 40 }),
        fc.nat({ max: 40 }),
        (pieces, head, tail) => {
          const ascii = pieces.map((piece) => piece.replaceAll(/[^ -~]/g, "?"));
          const whole = ascii.join("");
          const kept = excerptOf(head, tail);
          for (const piece of ascii) kept.add(piece);
          if (whole.length <= head + tail) expect(kept.read()).toBe(whole);
          else {
            expect(kept.leftOutBytes()).toBe(whole.length - head - tail);
            expect(kept.read().startsWith(`${whole.slice(0, head)}\n[…`)).toBe(true);
            expect(kept.read().endsWith(`…]\n${whole.slice(whole.length - tail)}`)).toBe(true);
          }
        },
      ),
    );
  });

  it("has no character cut in two", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("a", "é", "€", "😀"), maxLength: 30 }),
        fc.nat({ max: 20 }),
        fc.nat({ max: 20 }),
        (text, head, tail) => {
          const kept = excerptOf(head, tail);
          for (const char of text) kept.add(char);
          expect(kept.read()).not.toContain("\uFFFD");
          const [begin = "", note, end = ""] = kept.read().split("\n");
          expect(text.startsWith(begin) && text.endsWith(end)).toBe(true);
          const left = Buffer.byteLength(text) - Buffer.byteLength(begin) - Buffer.byteLength(end);
          expect(kept.leftOutBytes()).toBe(left);
          expect(note).toBe(left === 0 ? undefined : `[… ${left} bytes left out …]`);
        },
      ),
    );
  });
});
