// Blobs are there if and only if a run refers to them: whoever stores, erases, is refused or dies in the middle.

import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setImmediate as nextTurn } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Draft, limits, RunwireError } from "@runwire/protocol";
import * as server from "@runwire/server";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Blobs } from "../../server/dist/blobs/store.js";
import type { Line } from "./crash-spiller.js";
import { strace } from "./strace.js";
import { asked, codeOf, isSoak, lawMsMax } from "./suites/store/trial.js";
import { tool } from "./tools.js";

const spiller = fileURLToPath(new URL("./crash-spiller.js", import.meta.url));
const unshare = tool("unshare");
const serverPath = import.meta.resolve("@runwire/server");
const newRun = { ...asked(24 * 60 * 60 * 1000), messages: [] };

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "runwire-blobs-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** What a data folder holds, opened. `through` may stand between the count and the files. */
function open(
  through: (blobs: Blobs) => Blobs = (blobs) => blobs,
  openWriter?: server.SqliteOptions["openWriter"],
) {
  const store = server.sqliteStore({
    path: join(folder, "runwire.db"),
    durability: "os",
    clock: server.systemClock,
    ...(openWriter === undefined ? {} : { openWriter }),
  });
  const inFolder = server.folderBlobs({ path: join(folder, "blobs"), durability: "os" });
  const blobs = server.countedBlobs(through(inFolder), store);
  store.onUnreferred(blobs.drop);
  const ingest = server.ingest(store, server.transcripts(store), { blobs });
  return {
    store,
    blobs,
    ingest,
    async close() {
      ingest.close();
      await store.close();
    },
  };
}

/** Names of all files, as tenant/ref; what is not a blob has its own name. */
function files(): readonly string[] {
  const path = join(folder, "blobs");
  if (!existsSync(path)) return [];
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const [tenant] = entry.parentPath.slice(path.length + 1).split("/");
      return `${tenant}/${/^[0-9a-f]{64}$/.test(entry.name) ? `blob_${entry.name}` : entry.name}`;
    })
    .sort();
}

const contents = ["a", "b", "c"].map((unit) => unit.repeat(limits.memberBytesMax + 1));
const refOf = (text: string): string => `blob_${createHash("sha256").update(text).digest("hex")}`;
const toolEnd = (output: string): Draft<"tool.end"> => ({
  type: "tool.end",
  payload: { call_id: "call_1", ok: true, output },
});

type Step =
  | {
      readonly does: "append" | "refused";
      readonly run: number;
      readonly content: number;
      readonly waits: number;
    }
  | { readonly does: "erase"; readonly run: number; readonly waits: number };

const run = fc.nat(3);
const waits = fc.nat(12);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ does: fc.constant("append" as const), run, content: fc.nat(2), waits }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constant("refused" as const), run, content: fc.nat(2), waits }),
  },
  { weight: 2, arbitrary: fc.record({ does: fc.constant("erase" as const), run, waits }) },
);

describe("blobs", { timeout: lawMsMax }, () => {
  it("are there if and only if a run refers to them, whoever stores, erases or is refused at once [RW-BLOB-5]", async () => {
    const pauses: number[] = [];
    // Every touch of a file takes a while, another one each time.
    const pause = async (): Promise<void> => {
      for (let turns = pauses.pop() ?? 0; turns > 0; turns--) await nextTurn();
    };
    const { store, ingest, close } = open((blobs) => ({
      ...blobs,
      async put(key, content) {
        await pause();
        await blobs.put(key, content);
        await pause();
      },
      async remove(key) {
        await pause();
        await blobs.remove(key);
        await pause();
      },
    }));
    let rounds = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 24 }), fc.array(fc.nat(8)), async (steps, slow) => {
        pauses.splice(0, pauses.length, ...slow);
        // Runs of two tenants: the same bytes are two blobs.
        const tenants = ["acme", "acme", "acme", "other"].map((tenant) => `${tenant}-${rounds}`);
        rounds += 1;
        const keys = await Promise.all(
          tenants.map(async (tenant) => ({ tenant, run_id: (await ingest.create(tenant, newRun)).run_id })),
        );
        await Promise.all(
          steps.map(async (one) => {
            const key = keys[one.run] as (typeof keys)[number];
            for (let turns = one.waits; turns > 0; turns--) await nextTurn();
            if (one.does === "erase") {
              await store.eraseTree(key);
              return;
            }
            let tries = 0;
            await ingest
              .change(key, (commit) => {
                commit.write(key.run_id, toolEnd(contents[one.content] as string));
                tries += 1;
                // Its blob is stored by now.
                if (one.does === "refused" && tries > 1) throw new RunwireError("KAI-RUN-STATE-0001");
              })
              .catch((error: unknown) => {
                const { code } = error as RunwireError;
                expect(["KAI-RUN-STATE-0001", "KAI-RUN-MISSING-0001", "KAI-STREAM-CONN-0002"]).toContain(
                  code,
                );
              });
          }),
        );
        const referred = new Set<string>();
        for (const key of keys) {
          for (const e of (await store.read(key, "full", 0, 1e9)).events) {
            const { blob_ref } = e.payload as { blob_ref?: string };
            if (blob_ref !== undefined) referred.add(`${key.tenant}/${blob_ref}`);
          }
        }
        expect(files().filter((file) => tenants.some((tenant) => file.startsWith(`${tenant}/`)))).toEqual(
          [...referred].sort(),
        );
        for (const tenant of new Set(tenants)) {
          for (const ref of contents.map(refOf)) {
            const known = await store.blob(tenant, ref);
            expect(known !== undefined).toBe(referred.has(`${tenant}/${ref}`));
          }
        }
      }),
      { numRuns: isSoak ? 1000 : 100, interruptAfterTimeLimit: lawMsMax / 2 },
    );
    await close();
  });

  it("are not stored for an append that is refused, or was stored before [RW-BLOB-5]", async () => {
    let puts = 0;
    const { ingest, close } = open((blobs) => ({
      ...blobs,
      put(key, content) {
        puts += 1;
        return blobs.put(key, content);
      },
    }));
    const { run_id } = await ingest.create("acme", newRun);
    const key = { tenant: "acme", run_id };
    const claim = { id: "p", epoch: 1, seq: 1 };
    for (let again = 0; again < 2; again++) await ingest.append(key, [toolEnd(contents[0] as string)], claim);
    expect([puts, files()]).toEqual([1, [`acme/${refOf(contents[0] as string)}`]]);
    await ingest.append(key, [{ type: "run.lifecycle", payload: { state: "aborted" } }]);
    expect(await codeOf(ingest.append(key, [toolEnd(contents[1] as string)]))).toBe("KAI-RUN-ENDED-0001");
    expect(puts).toBe(1);
    await close();
  });

  it("that cannot be stored refuse the append, and leave nothing [RW-BLOB-5]", async () => {
    const { ingest, store, close } = open();
    const { run_id } = await ingest.create("acme", newRun);
    const key = { tenant: "acme", run_id };
    mkdirSync(join(folder, "blobs"));
    // A file where a folder should be.
    writeFileSync(join(folder, "blobs", "acme"), "");
    expect(await codeOf(ingest.append(key, contents.map(toolEnd)))).toBe("KAI-SERVER-STORE-0001");
    expect((await store.head(key))?.views.full.pos).toBe(2);
    rmSync(join(folder, "blobs", "acme"));
    await ingest.append(key, contents.map(toolEnd));
    expect(files()).toEqual(contents.map((text) => `acme/${refOf(text)}`).sort());
    await close();
  });

  it("stay where nobody knows whether their events are stored, until the next start knows [RW-BLOB-5]", async () => {
    let isFailing = false;
    const committing: (() => Promise<void>)[] = [];
    const { ingest, close } = open(undefined, (path, durability) => {
      const writer = server.writerHere(path, durability);
      return {
        ...writer,
        async write(list) {
          if (!isFailing) return writer.write(list);
          committing.push(() => writer.write(list));
          throw new server.InDoubt("disk I/O error");
        },
      };
    });
    const [stored, lost] = contents as [string, string];
    const keys = [];
    for (let i = 0; i < 2; i++)
      keys.push({ tenant: "acme", run_id: (await ingest.create("acme", newRun)).run_id });
    const [key, other] = keys as [server.RunKey, server.RunKey];
    isFailing = true;
    for (const output of [stored, lost])
      expect(await codeOf(ingest.append(key, [toolEnd(output)]))).toBe("KAI-SERVER-STORE-0001");
    isFailing = false;
    // Another one that is refused with the same bytes removes nothing either.
    let tries = 0;
    const refused = ingest.change(other, (commit) => {
      commit.write(other.run_id, toolEnd(stored));
      if (++tries > 1) throw new RunwireError("KAI-RUN-STATE-0001");
    });
    expect(await codeOf(refused)).toBe("KAI-RUN-STATE-0001");
    expect(files()).toEqual([stored, lost].map((text) => `acme/${refOf(text)}`).sort());
    // One of them was on the disk after all.
    await committing[0]?.();
    await close();
    const again = open();
    await again.blobs.clean();
    expect(files()).toEqual([`acme/${refOf(stored)}`]);
    expect(await again.store.blob("acme", refOf(stored))).toBeDefined();
    await again.close();
  });

  it("that cannot be removed keep no others from going, of no tenant [RW-BLOB-5]", async () => {
    const outputs = Array.from({ length: 70 }, (_, i) => `${i}`.padEnd(limits.memberBytesMax + 1));
    const stuck = refOf(outputs[7] as string);
    const { ingest, store, close } = open((blobs) => ({
      ...blobs,
      remove: async (key) => {
        if (key.tenant === "acme" && key.ref === stuck) throw new Error("stuck");
        await blobs.remove(key);
      },
    }));
    const keys = [];
    for (const tenant of ["acme", "other"]) {
      const key = { tenant, run_id: (await ingest.create(tenant, newRun)).run_id };
      await ingest.append(key, outputs.map(toolEnd));
      keys.push(key);
    }
    expect(files()).toHaveLength(2 * outputs.length);
    await expect(store.eraseTrees(keys)).rejects.toThrow("stuck");
    expect(files()).toEqual([`acme/${stuck}`]);
    await close();
  });

  it("never lead out of their folder", async () => {
    const blobs = server.folderBlobs({ path: join(folder, "blobs"), durability: "os" });
    const good = { tenant: "acme", ref: refOf("x") };
    for (const bad of [
      { ...good, tenant: ".." },
      { ...good, tenant: "a/../.." },
      { ...good, tenant: "" },
      { ...good, ref: "blob_../../../../etc/passwd" },
      { ...good, ref: `${good.ref}/..` },
      { ...good, ref: good.ref.toUpperCase() },
    ]) {
      await expect(blobs.open(bad)).rejects.toThrow("not a blob's name");
      await expect(blobs.put(bad, Buffer.from("x"))).rejects.toThrow("not a blob's name");
      await expect(blobs.remove(bad)).rejects.toThrow("not a blob's name");
    }
    expect(files()).toEqual([]);
  });
});

describe("a stored blob", () => {
  it("is flushed before it has its name, and its name before its event is answered [RW-LOG-5]", ({
    skip,
  }) => {
    if (strace.whyNot !== undefined) skip(strace.whyNot);
    const trace = join(folder, "trace");
    const options = ["-f", "-qq", "-y", "-e", "trace=fsync,rename,write", "-o", trace];
    const traced = spawnSync("strace", [...options, process.execPath, spiller, serverPath, folder, "1"], {
      encoding: "utf8",
    });
    expect(traced.stderr).toBe("");
    // In the order in which each call was begun; the next is made after the one before was answered.
    const calls = readFileSync(trace, "utf8").split("\n");
    const at = (pattern: RegExp): number => calls.findIndex((line) => pattern.test(line));
    const steps = [
      at(/fsync\(\d+<[^>]*\/blobs\/acme\/..\/new-/),
      at(/rename\("[^"]*\/new-/),
      at(/fsync\(\d+<[^>]*\/blobs\/acme\/..>/),
      at(/fsync\(\d+<[^>]*\/blobs\/acme>/),
      at(/fsync\(\d+<[^>]*\/blobs>/),
      at(/write\(1<.*answered/),
    ];
    expect(steps).not.toContain(-1);
    expect(steps).toEqual([...steps].sort((a, b) => a - b));
  });
});

describe("a full disk", () => {
  it("refuses what does not fit with 507, and stores nothing of it", ({ skip }) => {
    if (unshare.whyNot !== undefined) skip(unshare.whyNot);
    mkdirSync(join(folder, "blobs"));
    // The blobs alone on a disk that holds two of them.
    const script = 'mount -t tmpfs -o size=200k none "$1" && shift && "$@" && find "$0" -type f | wc -l';
    const blobs = join(folder, "blobs");
    const command = [blobs, blobs, process.execPath, spiller, serverPath, folder, "4"];
    const { stdout, stderr, status } = spawnSync("unshare", ["-rm", "sh", "-c", script, ...command], {
      encoding: "utf8",
    });
    expect([status, stderr]).toEqual([0, ""]);
    const lines = stdout.trim().split("\n");
    const count = Number(lines.pop());
    const told = lines.map((line) => JSON.parse(line) as Line);
    const answered = told.filter((line) => "answered" in line);
    const refused = told.flatMap((line) => ("refused" in line ? [line.refused] : []));
    expect(answered.length).toBeGreaterThan(0);
    expect(refused.length).toBe(4 - answered.length);
    expect(new Set(refused)).toEqual(new Set(["KAI-SERVER-STORE-0002"]));
    expect(count).toBe(answered.length);
  });
});

describe("after kill -9", { timeout: lawMsMax }, () => {
  it("a blob whose event was not committed is gone at the next start [RW-BLOB-5]", async () => {
    const lines = await spillUntil(["1", "hang"], (line) => "put" in line);
    const { put } = lines.at(-1) as { put: string };
    expect(files()).toEqual([`acme/${put}`]);
    const unfinished = join(folder, "blobs", "acme", put.slice(5, 7), "new-0011-1");
    writeFileSync(unfinished, "half a bl");
    const { blobs, close } = open();
    await blobs.clean();
    expect(files()).toEqual([]);
    await close();
  });

  it("what cannot be removed keeps no other blob from going at the next start [RW-BLOB-5]", async () => {
    const lines = await spillUntil(["1", "hang"], (line) => "put" in line);
    const { put } = lines.at(-1) as { put: string };
    // Folders where files should be, before it in every listing.
    for (const name of ["0".repeat(64), "new-0011-1"])
      mkdirSync(join(folder, "blobs", "acme", "00", name), { recursive: true });
    expect(files()).toEqual([`acme/${put}`]);
    const { blobs, close } = open();
    await expect(blobs.clean()).rejects.toThrow();
    expect(files()).toEqual([]);
    await close();
  });

  it("a tenant's folder that cannot be read keeps no other's blob at the next start [RW-BLOB-5]", async () => {
    const lines = await spillUntil(["1", "hang"], (line) => "put" in line);
    const { put } = lines.at(-1) as { put: string };
    const file = join(folder, "blobs", "acme", put.slice(5, 7), put.slice(5));
    // A link to itself leads nowhere, whoever follows it.
    symlinkSync("aaaa", join(folder, "blobs", "aaaa"));
    const { blobs, close } = open();
    await expect(blobs.clean()).rejects.toThrow("ELOOP");
    expect(existsSync(file)).toBe(false);
    await close();
  });

  it("every blob of an answered event is whole, and there is no other [RW-BLOB-5]", async () => {
    for (let round = 0; round < (isSoak ? 50 : 4); round++) {
      const enough = 1 + Math.floor(Math.random() * 30);
      let seen = 0;
      const lines = await spillUntil(["1000"], () => ++seen === enough);
      const { blobs, store, close } = open();
      await blobs.clean();
      const referred = new Set<string>();
      for (const { run } of (await store.listRuns("acme", { limit: 200 })).heads) {
        for (const e of (await store.read({ tenant: "acme", run_id: run.run_id }, "full", 0, 1e9)).events) {
          const { blob_ref } = e.payload as { blob_ref?: string };
          if (blob_ref !== undefined) referred.add(blob_ref);
        }
      }
      for (const line of lines) if ("answered" in line) expect(referred).toContain(line.answered);
      expect(files()).toEqual([...referred].map((ref) => `acme/${ref}`).sort());
      for (const ref of referred) {
        const content = readFileSync(join(folder, "blobs", "acme", ref.slice(5, 7), ref.slice(5)), "utf8");
        expect(refOf(content)).toBe(ref);
      }
      await close();
    }
  });
});

/** Runs a spiller until it has said enough, and kills it. */
async function spillUntil(
  args: readonly string[],
  isEnough: (line: Line) => boolean,
): Promise<readonly Line[]> {
  const child = spawn(process.execPath, [spiller, serverPath, folder, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const lines: Line[] = [];
  for await (const text of createInterface({ input: child.stdout })) {
    lines.push(JSON.parse(text) as Line);
    if (isEnough(lines.at(-1) as Line)) child.kill("SIGKILL");
  }
  expect((await exited)[1]).toBe("SIGKILL");
  return lines;
}
