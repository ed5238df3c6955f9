import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeOf, type TestContext, testContext } from "../testing/context.js";
import { fileListTool } from "./file-list.js";
import { fileReadTool } from "./file-read.js";
import { fileWriteTool } from "./file-write.js";
import { toolLimits } from "./limits.js";

let context: TestContext;
beforeEach(() => {
  context = testContext();
});
afterEach(() => context.remove());

const read = (path: string, rest: object = {}) => outcomeOf(fileReadTool, { path, ...rest }, context);
const list = (path?: string, depth?: number) => outcomeOf(fileListTool, { path, depth }, context);
const write = (path: string, content: string, append = false) =>
  outcomeOf(fileWriteTool, { path, content, append }, context);
const inside = (path: string) => join(context.workspace, path);
const outside = (path: string) => join(context.outside, path);

const secret = "the secret of another run";

/** Everything outside of the workspace, as it is. */
function surroundings(): unknown {
  const found = ["", "other", "other/hidden"].flatMap((folder) =>
    readdirSync(outside(folder)).map((name) => join(folder, name)),
  );
  return found.map((path) => {
    const stat = lstatSync(outside(path));
    if (path === "workspace") return path;
    return [path, stat.mode, stat.mtimeMs, stat.isFile() ? readFileSync(outside(path), "utf8") : null];
  });
}

describe("nothing outside of the workspace", () => {
  beforeEach(() => {
    mkdirSync(outside("other/hidden"), { recursive: true });
    writeFileSync(outside("other/secret.txt"), secret);
    writeFileSync(outside("other/hidden/secret.txt"), secret);
    writeFileSync(outside("secret.txt"), secret);
    mkdirSync(inside("a/b"), { recursive: true });
    writeFileSync(inside("a/plain.txt"), "plain");
    const links = {
      "to-folder": "../other",
      "to-file": "../other/secret.txt",
      "to-new": "../other/new.txt",
      // No further than the folder of this test: code that is broken on purpose must not reach the machine.
      "to-root": "..",
      "to-self": "to-self",
      "a/up": "../..",
      "a/b/abs": outside("other"),
      "a/b/abs-file": outside("secret.txt"),
      chain: "a/b/abs",
      within: "a",
    };
    for (const [name, target] of Object.entries(links)) symlinkSync(target, inside(name));
  });

  const names = fc.constantFrom(
    ...[
      "..",
      ".",
      "",
      "a",
      "b",
      "up",
      "abs",
      "abs-file",
      "to-folder",
      "to-file",
      "to-new",
      "to-root",
      "to-self",
    ],
    ...["chain", "within", "other", "secret.txt", "new.txt", "workspace", "plain.txt"],
    ...[
      "self",
      "fd",
      "root",
      "..\0",
      "\0",
      "%2e%2e",
      "..\\",
      "\\",
      "~",
      "…",
      "．．",
      "\ud800",
      "*",
      "x".repeat(300),
    ],
    ...["..;", ".. ", " ..", "-rf", "$HOME", "\n", "nul\0secret.txt", "C:", "file:"],
  );
  const paths = fc
    .tuple(
      fc.constantFrom("", "", "", "/", "//", "./", "../", "a/", "./../"),
      fc.array(names, { maxLength: 6 }),
    )
    .map(([prefix, parts]) => prefix + parts.join("/"));
  const absolute = fc.constantFrom(
    "/secret.txt",
    "/other/secret.txt",
    "/other",
    "/other/new.txt",
    "/workspace/../secret.txt",
  );
  const nasty = fc.oneof({ weight: 6, arbitrary: paths }, { weight: 1, arbitrary: fc.string() }, absolute);

  it("is read, written, made or told of, whatever the path", { timeout: 120_000 }, async () => {
    const before = surroundings();
    const told: string[] = [];
    await fc.assert(
      fc.asyncProperty(nasty, fc.boolean(), fc.boolean(), async (given, append, isFull) => {
        const path = isFull && given.startsWith("/") ? context.outside + given : given;
        const outcomes = [await read(path), await list(path, 16), await write(path, "overwritten", append)];
        told.push(...outcomes.map((outcome) => JSON.stringify(outcome)));
        expect(surroundings()).toEqual(before);
        // So that a link that was replaced does not make the next path harmless.
        expect(lstatSync(inside("to-file")).isSymbolicLink()).toBe(true);
      }),
      { numRuns: process.env.RUNWIRE_SOAK === "1" ? 1000 : 60 },
    );
    expect(told.join("\n")).not.toContain(secret);
    expect(told.join("\n")).not.toContain(context.outside);
    expect(told.join("\n")).not.toContain("/proc/self");
    expect(told.join("\n")).not.toContain("hidden");
    expect(readdirSync(context.outside).sort()).toEqual(["other", "secret.txt", "workspace"]);
  });

  it("can be told to be there or not by what a path through a link says", async () => {
    for (const call of [read, (path: string) => list(path), (path: string) => write(path, "x")]) {
      const there = await call("to-folder/secret.txt");
      const missing = await call("to-folder/nothing.txt");
      expect(there).toEqual(missing);
      expect(there.kind).toBe("refused");
    }
  });

  it("is reached through a folder that is swapped for a link all the while", async () => {
    mkdirSync(inside("swap"));
    writeFileSync(inside("swap/secret.txt"), "mine");
    const before = surroundings();
    const script = `cd ${context.workspace}; ln -s ../other link; while [ -e go ]; do mv swap kept; mv link swap; mv swap link; mv kept swap; done`;
    writeFileSync(inside("go"), "");
    const swapper = spawn("/bin/sh", ["-c", script], { stdio: "ignore" });
    const over = new Promise((resolve) => swapper.on("exit", resolve));
    const kinds = new Set<string | null>();
    for (let i = 0; i < 400; i++) {
      const outcome = await read("swap/secret.txt");
      kinds.add(outcome.kind);
      expect(["mine", undefined]).toContain(outcome.output.content);
      kinds.add((await write("swap/new.txt", "x")).kind);
      expect(JSON.stringify(await list("swap", 3))).not.toContain("hidden");
    }
    rmSync(inside("go"));
    await over;
    // Both sides of the swap were met, or the test proves nothing.
    expect(kinds).toContain(null);
    expect(kinds.size).toBeGreaterThan(1);
    expect(surroundings()).toEqual(before);
  });

  it("is changed through a second name of one of its files", async () => {
    linkSync(outside("secret.txt"), inside("hard.txt"));
    expect(await write("hard.txt", "mine")).toMatchObject({ kind: null });
    expect(await write("hard.txt", " too", true)).toMatchObject({ kind: null });
    expect(readFileSync(inside("hard.txt"), "utf8")).toBe("mine too");
    expect(readFileSync(outside("secret.txt"), "utf8")).toBe(secret);
  });

  it("is the workspace, when that is a link itself", async () => {
    renameSync(context.workspace, outside("moved"));
    symlinkSync(outside("other"), context.workspace);
    expect(await read("secret.txt")).toMatchObject({ kind: "refused" });
    expect(await write("new.txt", "x")).toMatchObject({ kind: "refused" });
    expect(existsSync(outside("other/new.txt"))).toBe(false);
  });
});

describe("what is no ordinary file", () => {
  it("is refused at once: a FIFO, a socket, a device, a folder", async () => {
    execFileSync("mkfifo", [inside("fifo")]);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(inside("socket"), resolve));
    mkdirSync(inside("folder"));
    symlinkSync("/dev/zero", inside("device"));
    for (const name of ["fifo", "socket", "folder", "device"]) {
      expect(await read(name), name).toMatchObject({ kind: "refused" });
      expect(await write(name, "x"), name).toMatchObject({ kind: "refused" });
      expect(await write(name, "x", true), name).toMatchObject({ kind: "refused" });
      expect(await read(`${name}/x`), name).toMatchObject({
        kind: name === "folder" ? "not-found" : "refused",
      });
    }
    expect((await list()).output.entries).toEqual([
      { path: "device", kind: "link", bytes: 0 },
      { path: "fifo", kind: "other", bytes: 0 },
      { path: "folder", kind: "folder", bytes: 0 },
      { path: "socket", kind: "other", bytes: 0 },
    ]);
    server.close();
  });
});

describe("a file", () => {
  const text = fc
    .string({ unit: "binary", maxLength: 200 })
    .map((given) => given.replaceAll(/\p{Surrogate}/gu, "?"));

  it("is read as it was written, and listed with its size", async () => {
    await fc.assert(
      fc.asyncProperty(text, fc.array(text, { maxLength: 3 }), async (first, more) => {
        expect((await write("x/y.txt", first)).kind).toBeNull();
        for (const next of more) expect((await write("x/y.txt", next, true)).kind).toBeNull();
        const whole = first + more.join("");
        expect((await read("x/y.txt")).output.content).toBe(whole);
        expect((await list("x")).output.entries).toEqual([
          { path: "y.txt", kind: "file", bytes: Buffer.byteLength(whole) },
        ]);
      }),
    );
  });

  it("is read in parts that make the whole", async () => {
    const lines = fc.array(fc.constantFrom("", "a", "ä\r", "longer line"), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(lines, fc.integer({ min: 1, max: 7 }), fc.boolean(), async (all, size, isEnded) => {
        const whole = all.join("\n") + (isEnded ? "\n" : "");
        await write("parts.txt", whole);
        let parts = "";
        let from = 1;
        for (;;) {
          const { output } = await read("parts.txt", { from, lines: size });
          if (output.lines === 0) break;
          parts += output.content;
          from += size;
        }
        expect(parts).toBe(whole);
      }),
    );
  });

  it("keeps all that is added to it at once", async () => {
    await Promise.all(Array.from({ length: 40 }, (_, i) => write("log.txt", `${i}\n`, true)));
    const got = String((await read("log.txt")).output.content)
      .trim()
      .split("\n");
    expect(got.map(Number)).toEqual(Array.from({ length: 40 }, (_, i) => i));
    expect(readdirSync(context.workspace)).toEqual(["log.txt"]);
  });

  it("stays executable when it is written again, and never becomes anything more", async () => {
    await write("run.sh", "one");
    chmodSync(inside("run.sh"), 0o4755);
    await write("run.sh", "two");
    expect(statSync(inside("run.sh")).mode & 0o7777).toBe(0o755);
  });

  it("that is not there is not found, and one that is not text says so", async () => {
    expect(await read("nothing.txt")).toMatchObject({ kind: "not-found" });
    expect(await list("nothing")).toMatchObject({ kind: "not-found" });
    writeFileSync(inside("binary"), Buffer.from([0xff, 0xfe, 0x00]));
    expect(await read("binary")).toMatchObject({ kind: "not-text" });
  });

  it("is not written when the call is called off", async () => {
    context.abort();
    await expect(write("x.txt", "x")).rejects.toThrow("aborted");
    expect(readdirSync(context.workspace)).toEqual([]);
  });
});

describe("limits", () => {
  it("a file as large as allowed is written, read in parts, and not made larger", async () => {
    const line = `${"x".repeat(1023)}\n`;
    const largest = line.repeat(toolLimits.fileBytesMax / 1024);
    expect(await write("large.txt", largest)).toMatchObject({ kind: null });
    expect(await write("large.txt", "x", true)).toMatchObject({ kind: "too-large" });
    expect(await write("larger.txt", `${largest}x`)).toMatchObject({ kind: "too-large" });
    const { output } = await read("large.txt");
    expect(output).toMatchObject({ lines: 1024, lines_total: 4096, truncated: true });
    expect(Buffer.byteLength(String(output.content))).toBe(toolLimits.readBytesMax);
    expect((await read("large.txt", { from: 4096 })).output).toMatchObject({
      content: line,
      truncated: false,
    });
    writeFileSync(inside("larger.txt"), `${largest}x`);
    expect(await read("larger.txt")).toMatchObject({ kind: "too-large" });
    await write("line.txt", "x".repeat(toolLimits.readBytesMax + 1));
    expect(await read("line.txt")).toMatchObject({ kind: "too-large" });
  });

  it("a workspace holds so many bytes and no more", async () => {
    for (let i = 0; i < toolLimits.workspaceBytesMax / toolLimits.fileBytesMax; i++) {
      writeFileSync(inside(`${i}`), Buffer.alloc(toolLimits.fileBytesMax));
    }
    expect(await write("more/x.txt", "x")).toMatchObject({ kind: "full" });
    expect(existsSync(inside("more"))).toBe(false);
    expect(await write("0", "x", true)).toMatchObject({ kind: "too-large" });
    expect(await write("0", "smaller")).toMatchObject({ kind: null });
    writeFileSync(inside("0"), Buffer.alloc(toolLimits.fileBytesMax));
    rmSync(inside("0"));
    expect(await write("more/x.txt", "x")).toMatchObject({ kind: null });
  });

  it("a workspace holds so many files and folders, and a listing says when it is cut", async () => {
    for (let i = 0; i < toolLimits.workspaceEntriesMax - 1; i++) writeFileSync(inside(`${i}`), "");
    expect(await write("a/b", "x")).toMatchObject({ kind: "full" });
    expect(await write("b", "x")).toMatchObject({ kind: null });
    expect(await write("c", "x")).toMatchObject({ kind: "full" });
    expect(await write("b", "another")).toMatchObject({ kind: null });
    const { output } = await list();
    expect(output.entries).toHaveLength(toolLimits.listEntriesMax);
    expect(output.truncated).toBe(true);
  });

  it("no call leaves a file open", async () => {
    mkdirSync(inside("a/b/c"), { recursive: true });
    symlinkSync(context.outside, inside("a/b/link"));
    const openFiles = () => readdirSync("/proc/self/fd").length;
    await list("", 16);
    const before = openFiles();
    for (const path of ["a", "a/b/link/x", "a/b/c/new", "a/b/c/new/x", "nothing/x", "../x"]) {
      for (let i = 0; i < 10; i++) {
        await read(path);
        await list(path, 16);
        await write(path, "x", i % 2 === 0);
      }
    }
    expect(openFiles()).toBeLessThanOrEqual(before);
  });
});
