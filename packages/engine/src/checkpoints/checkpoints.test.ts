import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { testContext } from "../testing/context.js";
import { runNamed, type TestWorkspaces, testWorkspaces, treeIn } from "../testing/workspaces.js";
import { fileWriteTool } from "../tools/file-write.js";
import { checkpointLimits } from "./limits.js";
import { magic } from "./pack.js";
import { shelf } from "./shelf.js";
import { snapshots } from "./snapshot.js";
import type { Workspaces } from "./workspaces.js";

let test: TestWorkspaces;
let places: Workspaces;
let count = 0;
beforeEach(() => {
  test = testWorkspaces();
  ({ places } = test);
});
afterEach(() => test.remove());

/** A live run of its own tree, with its folder. */
async function live(tenant = "default") {
  count += 1;
  const run = runNamed(`run_${count}`, `run_${count}`, tenant);
  test.ended.set(run.run_id, null);
  return { run, folder: await places.make(run) };
}

const folderOf = (run_id: string, tenant = "default") => join(test.dataFolder, "workspaces", tenant, run_id);
const checkpointsOf = (run_id: string) => join(test.dataFolder, "checkpoints", "default", run_id);
const fileOf = (run_id: string, id: string) => join(checkpointsOf(run_id), `${id}-${run_id}`);
const idsOf = async (run: ReturnType<typeof runNamed>) => [...(await places.kept(run)).keys()];

const openFiles = () =>
  readdirSync("/proc/self/fd").map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      // It was open for the listing itself.
      return "";
    }
  });

async function taken(run: ReturnType<typeof runNamed>): Promise<string> {
  const id = await places.checkpoint(run);
  expect([id, test.reported]).toEqual([expect.stringMatching(/^ckpt_[0-9A-Z]{26}$/), []]);
  return id as string;
}

async function restored(run: ReturnType<typeof runNamed>, id: string) {
  const made = await places.restore(run, id);
  if (made === undefined) throw new Error(`${id} is not kept`);
  const tree = treeIn(folderOf(made.run_id, run.tenant));
  await made.settle("refused");
  return tree;
}

const name = fc
  .oneof(
    fc.constantFrom(
      "a",
      "b",
      "c",
      "ä",
      "日本",
      "🙂",
      " ",
      "a b",
      "-rf",
      "..a",
      ".hidden",
      "new\nline",
      "\\",
      "*",
    ),
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }),
  )
  .map((text) => text.replace(/[/\0]/g, "_"))
  .filter((text) => text !== "." && text !== ".." && !/\p{Cs}/u.test(text));
const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join("/"));
const mode = fc.constantFrom(0o644, 0o600, 0o755, 0o444, 0o400, 0o777);
const entry = fc.oneof(
  fc.record({ kind: fc.constant("file" as const), path, mode, content: fc.uint8Array({ maxLength: 300 }) }),
  fc.record({
    kind: fc.constant("large" as const),
    path,
    mode,
    bytes: fc.constantFrom(0, 65_535, 65_536, 65_537, 300_000),
  }),
  fc.record({ kind: fc.constant("folder" as const), path, mode: fc.constantFrom(0o755, 0o700, 0o555) }),
  fc.record({
    kind: fc.constant("link" as const),
    path,
    target: fc.oneof(fc.constantFrom("..", "/", "../outside.txt", "a", ".", "loop"), name),
  }),
);
type Entry = typeof entry extends fc.Arbitrary<infer One> ? One : never;

/** Makes what can be made: an entry in the way of another stays. */
function fill(folder: string, entries: readonly Entry[]): void {
  const folders: (readonly [string, number])[] = [];
  for (const one of entries) {
    const file = join(folder, one.path);
    try {
      if (lstatSync(file, { throwIfNoEntry: false }) !== undefined) continue;
      if (one.path.split("/").some((_, i, all) => isLink(join(folder, ...all.slice(0, i + 1))))) continue;
      mkdirSync(dirname(file), { recursive: true });
      if (one.kind === "link") symlinkSync(one.target, file);
      else if (one.kind === "folder") {
        mkdirSync(file);
        folders.push([file, one.mode]);
      } else {
        writeFileSync(file, one.kind === "file" ? one.content : Buffer.alloc(one.bytes, "x"));
        chmodSync(file, one.mode);
      }
    } catch (error) {
      if (
        !["ENOTDIR", "EEXIST", "ENAMETOOLONG", "ELOOP"].includes((error as NodeJS.ErrnoException).code ?? "")
      )
        throw error;
    }
  }
  for (const [file, its] of folders.reverse()) chmodSync(file, its);
}

const isLink = (file: string): boolean =>
  lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true;

describe("a checkpoint", () => {
  it("is the workspace as it was, whatever is in it", async () => {
    const outside = join(test.dataFolder, "workspaces", "default", "outside.txt");
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { maxLength: 12 }), async (entries) => {
        const { run, folder } = await live();
        writeFileSync(outside, "a secret of the machine");
        fill(folder, entries);
        const before = treeIn(folder);
        const id = await taken(run);
        expect(gunzipSync(readFileSync(fileOf(run.run_id, id))).includes("a secret")).toBe(false);
        expect(await restored(run, id)).toEqual(before);
        expect(treeIn(folder)).toEqual(before);
      }),
      { numRuns: 30 },
    );
  });

  it("is its own moment, however soon the next change comes", async () => {
    const edits = fc.array(
      fc.record({
        path: fc.constantFrom("a", "b", "dir/a", "dir/b"),
        how: fc.constantFrom("write", "write", "in place", "remove", "nothing"),
        letter: fc.constantFrom("x", "y"),
      }),
      { minLength: 1, maxLength: 9 },
    );
    await fc.assert(
      fc.asyncProperty(edits, async (list) => {
        const { run, folder } = await live();
        mkdirSync(join(folder, "dir"));
        const moments: (readonly [string, object])[] = [];
        for (const { path: at, how, letter } of list) {
          const file = join(folder, at);
          if (how === "remove") rmSync(file, { force: true });
          if (how === "write") {
            rmSync(file, { force: true });
            writeFileSync(file, letter);
          }
          // The same size, the same inode, and perhaps the same millisecond.
          if (how === "in place" && existsSync(file)) writeFileSync(file, letter, { flag: "r+" });
          moments.push([await taken(run), treeIn(folder)]);
        }
        for (const [id, tree] of moments) expect(await restored(run, id)).toEqual(tree);
      }),
      { numRuns: 25 },
    );
  });

  it("of a workspace that has not changed is another name of the last one", async () => {
    const { run, folder } = await live();
    const inode = (id: string) => lstatSync(fileOf(run.run_id, id)).ino;
    const [first, second] = [await taken(run), await taken(run)];
    expect(inode(second)).toBe(inode(first));
    writeFileSync(join(folder, "a"), "text");
    const third = await taken(run);
    expect(inode(third)).not.toBe(inode(first));
    expect(inode(await taken(run))).toBe(inode(third));
  });

  it("of what has not changed for a while costs no more than a look, and misses no change", async () => {
    const { run, folder } = await live();
    const files = shelf(join(test.dataFolder, "checkpoints"), test.host);
    let packed = 0;
    const newFile = (): string => {
      packed += 1;
      return files.newFile();
    };
    const snapshot = snapshots({ ...files, newFile }, false, 0n);
    const [file, probe] = [join(folder, "a"), join(test.dataFolder, "probe")];
    /** Until the file system's clock has moved on: then the file is no longer recent. */
    const later = (): void => {
      const { ctimeNs } = lstatSync(file, { bigint: true });
      do writeFileSync(probe, "x");
      while (lstatSync(probe, { bigint: true }).ctimeNs <= ctimeNs);
    };
    writeFileSync(file, "one");
    later();
    const first = await snapshot(run, folder);
    for (let i = 0; i < 3; i++) await snapshot(run, folder);
    expect(packed).toBe(1);
    for (const change of [
      () => writeFileSync(file, "two", { flag: "r+" }),
      () => chmodSync(file, 0o600),
      () => writeFileSync(join(folder, "b"), ""),
      () => unlinkSync(join(folder, "b")),
      () => execFileSync("touch", ["-d", "2001-01-01", file]),
    ]) {
      later();
      change();
      const before = packed;
      const id = await snapshot(run, folder);
      expect(packed).toBe(before + 1);
      expect(await restored(run, id)).toEqual(treeIn(folder));
    }
    expect(await restored(run, first)).toEqual({ a: ["file", 0o644, btoa("one")] });
    // What is recent is read again, since it may change without another time.
    const doubting = snapshots({ ...files, newFile }, false, 1n << 62n);
    packed = 0;
    for (let i = 0; i < 3; i++) await doubting(run, folder);
    expect(packed).toBe(3);
  });

  it("holds no half of what a tool is just writing", async () => {
    const { run, folder } = await live();
    const context = { ...testContext(), workspace: folder };
    let writing = 3;
    const writer = async (name: string): Promise<void> => {
      for (let i = 0; i < 12; i++)
        await fileWriteTool.run({ path: `${name}${i % 4}.txt`, content: "x".repeat(200_000) }, context);
      writing -= 1;
    };
    const writers = Promise.all(["a", "b", "c"].map(writer));
    while (writing > 0) {
      const id = await taken(run);
      for (const [at, [, , content]] of Object.entries(await restored(run, id)))
        expect([at, Buffer.from(String(content), "base64").length]).toEqual([
          expect.stringMatching(/^[abc]\d\.txt$/),
          200_000,
        ]);
    }
    await writers;
    context.remove();
  });

  it("is made also while a command takes files away", async () => {
    const { run, folder } = await live();
    writeFileSync(join(folder, "kept"), "kept");
    mkdirSync(join(folder, "some"));
    // Files that come and go for as long as this takes, as those of a compiler do.
    const script =
      "while :; do for n in 1 2 3 4 5 6 7 8 9; do echo > some/$n; mkdir some/d$n; done; rm -r some/*; done";
    const busy = spawn("sh", ["-c", script], { cwd: folder, stdio: "ignore" });
    try {
      for (let round = 0; round < 30; round++) {
        const id = await places.checkpoint(run);
        expect([id, test.reported]).toEqual([expect.any(String), []]);
      }
    } finally {
      busy.kill("SIGKILL");
      await once(busy, "close");
    }
    const [last = ""] = (await idsOf(run)).slice(-1);
    const restored = await places.restore(run, last);
    expect(readFileSync(join(folderOf(restored?.run_id ?? ""), "kept"), "utf8")).toBe("kept");
  });

  it("is not made of what is too large, too many or no text, and that is reported", async () => {
    const { run, folder } = await live();
    writeFileSync(join(folder, "huge"), "");
    truncateSync(join(folder, "huge"), checkpointLimits.bytesMax + 1);
    expect(await places.checkpoint(run)).toBeNull();
    unlinkSync(join(folder, "huge"));
    execFileSync("mkdir", ["-p", join(folder, ...Array.from({ length: 20 }, () => "deep"))]);
    expect(await places.checkpoint(run)).toBeNull();
    rmSync(join(folder, "deep"), { recursive: true });
    execFileSync("sh", ["-c", "touch \"$(printf 'a\\377')\""], { cwd: folder });
    expect(await places.checkpoint(run)).toBeNull();
    expect(test.reported).toHaveLength(3);
    expect(test.reported[0]).toEqual([
      "warn",
      "no checkpoint",
      { run_id: run.run_id, error: expect.stringContaining("bytes") },
    ]);
    expect(readdirSync(join(test.dataFolder, "checkpoints", ".new"))).toEqual([]);
  });
});

describe("of checkpoints", () => {
  it("the ten most recent of each run are kept [RW-CKPT-2]", async () => {
    const { run, folder } = await live();
    const child = runNamed(`${run.run_id}_child`, run.run_id);
    const ids: string[] = [];
    for (let i = 0; i < 13; i++) {
      writeFileSync(join(folder, "a"), String(i));
      ids.push(await taken(run));
      await taken(child);
    }
    expect(await idsOf(run)).toEqual(ids.slice(3));
    expect(await idsOf(child)).toHaveLength(10);
    expect(await places.restore(run, ids[2] as string)).toBeUndefined();
    expect(await restored(run, ids[3] as string)).toMatchObject({ a: ["file", 0o644, btoa("3")] });
  });

  it("the order is that in which they were made, whatever the clock does across a start", async () => {
    const { run } = await live();
    test.pass(365 * 24 * 60 * 60 * 1000);
    const first = await taken(run);
    test.pass(-365 * 24 * 60 * 60 * 1000);
    places = test.restart();
    const second = await taken(run);
    expect(await idsOf(run)).toEqual([first, second]);
  });

  it("none is kept longer than its days after the end of its tree [RW-CKPT-2]", async () => {
    const [young, old, alive] = [await live(), await live(), await live()];
    for (const { run } of [young, old, alive]) await taken(run);
    const dayMs = 24 * 60 * 60 * 1000;
    test.ended.set(young.run.run_id, 7 * dayMs - 1);
    test.ended.set(old.run.run_id, 7 * dayMs);
    await places.sweep();
    const left = await Promise.all([young, old, alive].map(async ({ run }) => (await idsOf(run)).length));
    expect(left).toEqual([1, 0, 1]);
    // The workspace lives as long as the run.
    expect(existsSync(old.folder)).toBe(true);
    test.ended.set(young.run.run_id, 8 * dayMs);
    await places.sweep();
    expect(await idsOf(young.run)).toHaveLength(1);
    test.pass(checkpointLimits.roundMs);
    await places.sweep();
    expect(await idsOf(young.run)).toHaveLength(0);
  });

  it("the oldest of a tenant go first where its quota is used up, and no other tenant's [RW-CKPT-2]", async () => {
    test.remove();
    test = testWorkspaces({ tenantBytesMax: 100_000 });
    ({ places } = test);
    const noise = (folder: string): void => writeFileSync(join(folder, "n"), randomBytes(20_000));
    const others = await live("other");
    noise(others.folder);
    const kept = await taken(others.run);
    const [a, b] = [await live(), await live()];
    const made: string[] = [];
    for (const { run, folder } of [a, b, a, b, a, b]) {
      noise(folder);
      made.push(await taken(run));
      const bytes = [...(await places.kept(a.run)).values(), ...(await places.kept(b.run)).values()];
      expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(100_000);
    }
    const left = [...(await idsOf(a.run)), ...(await idsOf(b.run))].sort();
    expect(left).toEqual(made.slice(-left.length));
    expect(left.length).toBeGreaterThanOrEqual(3);
    expect(await idsOf(others.run)).toEqual([kept]);
    // The same after a start, where what is used is counted anew.
    places = test.restart();
    noise(a.folder);
    made.push(await taken(a.run));
    noise(b.folder);
    made.push(await taken(b.run));
    const now = [...(await idsOf(a.run)), ...(await idsOf(b.run))].sort();
    expect(now).toEqual(made.slice(-now.length));
    expect(now.length).toBeLessThanOrEqual(4);
    writeFileSync(join(a.folder, "n"), randomBytes(200_000));
    expect(await places.checkpoint(a.run)).toBeNull();
    expect([...(await idsOf(a.run)), ...(await idsOf(b.run))].sort()).toEqual(now);
  });
});

describe("erasing", () => {
  it("of what cannot be removed keeps nothing else, of no run, and says so [RW-CKPT-5]", async () => {
    const runs = [await live(), await live(), await live("other"), await live()];
    for (const { run } of runs) await taken(run);
    // A folder in a checkpoint's place, and a file in the place of a tenant's folder.
    mkdirSync(join(checkpointsOf(runs[0]?.run.run_id ?? ""), "stuck"));
    rmSync(join(test.dataFolder, "workspaces", "other"), { recursive: true });
    writeFileSync(join(test.dataFolder, "workspaces", "other"), "");
    await expect(places.forget(runs.map(({ run }) => run))).rejects.toThrow("stuck");
    for (const { run, folder } of runs) expect([await idsOf(run), existsSync(folder)]).toEqual([[], false]);
  });

  it("takes along what a command has locked", async () => {
    // Whoever may do everything is kept out by nothing: then it is somebody else who tries.
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid?.(65_534);
    const own = testWorkspaces();
    try {
      const run = runNamed("run_locked");
      const folder = await own.places.make(run);
      mkdirSync(join(folder, "modules", "inner", "empty"), { recursive: true });
      writeFileSync(join(folder, "modules", "inner", "file"), "read-only, as package managers like it");
      chmodSync(join(folder, "modules", "inner", "empty"), 0);
      chmodSync(join(folder, "modules", "inner"), 0o555);
      chmodSync(join(folder, "modules"), 0o555);
      await own.places.forget([run]);
      expect(existsSync(folder)).toBe(false);
    } finally {
      if (isRoot) process.seteuid?.(0);
      own.remove();
    }
  });
});

describe("what a crash leaves", () => {
  it("is gone after the next start: files without a name, and folders without a run", async () => {
    const { run } = await live();
    await taken(run);
    writeFileSync(join(test.dataFolder, "checkpoints", ".new", "7"), "half");
    mkdirSync(join(folderOf("run_lost"), "deep"), { recursive: true });
    mkdirSync(checkpointsOf("run_gone"));
    writeFileSync(join(checkpointsOf("run_gone"), "ckpt_1-run_gone"), "x");
    places = test.restart();
    await places.sweep();
    expect(readdirSync(join(test.dataFolder, "checkpoints", ".new"))).toEqual([]);
    expect(readdirSync(join(test.dataFolder, "workspaces", "default"))).toEqual([run.run_id]);
    expect(readdirSync(join(test.dataFolder, "checkpoints", "default"))).toEqual([run.run_id]);
  });

  it("is not what is just being restored", async () => {
    const { run, folder } = await live();
    writeFileSync(join(folder, "a"), "text");
    const made = await places.restore(run, await taken(run));
    await places.sweep();
    expect(treeIn(folderOf(made?.run_id ?? ""))).toEqual(treeIn(folder));
    await made?.settle("unknown");
    test.pass(checkpointLimits.roundMs);
    await places.sweep();
    expect(existsSync(folderOf(made?.run_id ?? ""))).toBe(false);
  });

  it("is no checkpoint that the log does not name", async () => {
    const { run } = await live();
    const ids = [await taken(run), await taken(run), await taken(run)];
    await places.settle(run, ids[1] ?? null);
    expect(await idsOf(run)).toEqual(ids.slice(0, 2));
    await places.settle(run, null);
    expect(await idsOf(run)).toEqual([]);
  });
});

describe("restoring", () => {
  it("leaves nothing behind where the checkpoint is damaged or leads outside", async () => {
    const { run, folder } = await live();
    writeFileSync(join(folder, "a"), "text".repeat(1000));
    const id = await taken(run);
    const file = fileOf(run.run_id, id);
    const whole = readFileSync(file);
    const flipped = Buffer.from(whole);
    flipped.writeUInt8((flipped[flipped.length >> 1] ?? 0) ^ 0x10, flipped.length >> 1);
    const frame = (text: string): Buffer => {
      const bytes = Buffer.from(text);
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes.length);
      return Buffer.concat([length, bytes]);
    };
    const packed = (...entries: object[]): Buffer =>
      gzipSync(Buffer.concat([magic, ...entries.map((one) => frame(JSON.stringify(one)))]));
    for (const bytes of [
      Buffer.alloc(0),
      whole.subarray(0, whole.length - 9),
      flipped,
      gzipSync("something else"),
      packed({ path: "../out", kind: "folder", mode: 0o755 }),
      packed({ path: "/tmp/out", kind: "folder", mode: 0o755 }),
      packed(
        { path: "l", kind: "link", mode: 0, target: ".." },
        { path: "l/out", kind: "folder", mode: 0o755 },
      ),
    ]) {
      writeFileSync(file, bytes);
      await expect(places.restore(run, id)).rejects.toMatchObject({
        code: expect.stringMatching(/^KAI-SERVER-STORE-000[13]$/),
      });
      expect(readdirSync(join(test.dataFolder, "workspaces", "default"))).toEqual([run.run_id]);
      expect(readdirSync(join(test.dataFolder, "workspaces"))).toEqual(["default"]);
    }
  });

  it("leaves no file open where there is no room for a folder", async () => {
    const { run } = await live();
    const id = await taken(run);
    rmSync(dirname(folderOf(run.run_id)), { recursive: true });
    symlinkSync("/nowhere/at/all", dirname(folderOf(run.run_id)));
    await expect(places.restore(run, id)).rejects.toMatchObject({ code: "KAI-SERVER-STORE-0001" });
    expect(openFiles()).not.toContain(fileOf(run.run_id, id));
  });

  it("and listing tell of a disk that does not let them look, and of no bug", async () => {
    const { run } = await live();
    const id = await taken(run);
    // Not a missing folder: one that cannot be looked into.
    rmSync(checkpointsOf(run.run_id), { recursive: true });
    writeFileSync(checkpointsOf(run.run_id), "");
    const told = { code: "KAI-SERVER-STORE-0001", message: expect.stringContaining("ENOTDIR") };
    await expect(places.restore(run, id)).rejects.toMatchObject(told);
    await expect(places.kept(run)).rejects.toMatchObject(told);
  });

  it("takes no name but a checkpoint's, and only of its own run", async () => {
    const [one, other] = [await live(), await live()];
    const id = await taken(one.run);
    expect(await places.restore(other.run, id)).toBeUndefined();
    for (const no of ["", "..", "../../runwire.db", `${id}/..`, "ckpt_1"])
      expect(await places.restore(one.run, no)).toBeUndefined();
  });
});
