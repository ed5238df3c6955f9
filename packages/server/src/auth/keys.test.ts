import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RunwireError } from "@runwire/protocol";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Clock, systemClock } from "../clock.js";
import { type Caller, type Credentials, isTenant, type Scope, scopes } from "./caller.js";
import { createKey, hashKey, type KeyWish, revokeKey } from "./key.js";
import { readKeys } from "./key-file.js";
import { keyRing } from "./keys.js";

const secretScan = /\brw_[a-z2-7]{12}_[0-9A-Za-z]{43}\b/;
const wish: KeyWish = { tenant: "acme", scopes: ["read", "write"], name: "ci", lifeMs: undefined };
const noTrouble = (problem: string): void => expect.fail(problem);

let folder: string;
let path: string;
const open: Credentials[] = [];
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "runwire-keys-")), "data");
  path = join(folder, "keys.json");
});
afterEach(() => {
  for (const ring of open.splice(0)) ring.close();
  rmSync(join(folder, ".."), { recursive: true });
});

function ringAt(clock: Clock = systemClock, onTrouble = noTrouble): Credentials {
  const ring = keyRing(path, clock, onTrouble);
  open.push(ring);
  return ring;
}

async function outcome(ring: Credentials, key: string): Promise<Caller | string> {
  return ring.check(key).catch((error: unknown) => {
    if (error instanceof RunwireError) return error.code;
    throw error;
  });
}

const tenants = fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,62}$/);
const wishes: fc.Arbitrary<KeyWish> = fc.record({
  tenant: tenants,
  scopes: fc.subarray<Scope>([...scopes]),
  name: fc.string(),
  lifeMs: fc.option(fc.integer({ min: 1, max: 1e9 }), { nil: undefined }),
});

describe("a key", () => {
  it("lets in its tenant with its scopes until it is revoked or has expired, whatever was asked for", async () => {
    const asked = fc.array(fc.tuple(wishes, fc.boolean()), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(asked, fc.nat(2e9), async (all, laterMs) => {
        const madeMs = 1_700_000_000_000;
        rmSync(path, { force: true });
        const made = all.map(([one, revoke]) => ({ one, revoke, ...createKey(path, one, madeMs) }));
        for (const { revoke, record } of made) if (revoke) revokeKey(path, record.id, madeMs);
        const ring = ringAt({ ...systemClock, now: () => madeMs + laterMs });
        for (const { one, revoke, key, record } of made) {
          const credential = `key:${record.id}`;
          const endsMs = madeMs + (one.lifeMs ?? Number.POSITIVE_INFINITY);
          const ended = revoke || madeMs + laterMs >= endsMs;
          const caller = { tenant: one.tenant, scopes: new Set(one.scopes), credential, endsMs };
          expect(await outcome(ring, key)).toEqual(ended ? "KAI-AUTH-TOKEN-0003" : caller);
          expect(ring.isRevoked(credential)).toBe(ended);
        }
      }),
      { numRuns: 25 },
    );
  });

  it("that differs in anything is refused, with one answer for all", async () => {
    const { key } = createKey(path, wish, 0);
    const ring = ringAt();
    const other = fc.oneof(
      fc.tuple(fc.nat(key.length - 1), fc.string({ minLength: 1, maxLength: 1, unit: "grapheme" })),
      fc.tuple(fc.nat(key.length - 1), fc.constantFrom("", "_", "A", "a", "0", " ", "\n", "\0")),
    );
    await fc.assert(
      fc.asyncProperty(other, fc.boolean(), async ([at, character], replace) => {
        const changed = key.slice(0, at) + character + key.slice(replace ? at + 1 : at);
        fc.pre(changed !== key);
        await expect(ring.check(changed)).rejects.toThrow(new RunwireError("KAI-AUTH-TOKEN-0002"));
      }),
    );
    for (const garbage of [
      "",
      "rw_",
      `${key}\n`,
      ` ${key}`,
      key.toUpperCase(),
      hashKey(key),
      "x".repeat(1e6),
    ]) {
      await expect(ring.check(garbage)).rejects.toThrow(new RunwireError("KAI-AUTH-TOKEN-0002"));
    }
  });

  it("is found by secret scanners, never repeats and is nowhere in the data folder", () => {
    const keys = Array.from({ length: 20 }, () => createKey(path, wish, 0).key);
    for (const key of keys) expect(key).toMatch(secretScan);
    expect(new Set(keys).size).toBe(20);
    for (const file of readdirSync(folder)) {
      const text = readFileSync(join(folder, file), "latin1");
      expect(text).not.toMatch(secretScan);
      for (const key of keys) expect(text).not.toContain(key.slice(16));
    }
  });

  it("that was revoked twice keeps the time it was first revoked at", () => {
    const { record } = createKey(path, wish, 0);
    expect(revokeKey(path, record.id, 1000)?.revoked_at).toBe("1970-01-01T00:00:01.000Z");
    expect(revokeKey(path, record.id, 2000)?.revoked_at).toBe("1970-01-01T00:00:01.000Z");
    expect(revokeKey(path, "aaaaaaaaaaaa", 0)).toBeUndefined();
  });
});

describe("a file that is full of keys", () => {
  const dayMs = 86_400_000;
  const fill = (of: (i: number) => object): void => {
    createKey(path, wish, 0);
    const [first] = readKeys(path);
    const letters = (i: number): string =>
      Array.from(String(i).padStart(12, "0"), (digit) => "abcdefghij"[Number(digit)]).join("");
    const keys = Array.from({ length: 10_000 }, (_, i) => ({ ...first, id: letters(i), ...of(i) }));
    writeFileSync(path, JSON.stringify({ format: 1, keys }));
  };

  it("lets go of those that are over, and of no other", () => {
    const [past, later] = [new Date(dayMs - 1).toISOString(), new Date(dayMs + 1).toISOString()];
    fill((i) => (i < 9990 ? { expires_at: past } : i < 9995 ? { revoked_at: past } : { expires_at: later }));
    const { record } = createKey(path, wish, dayMs);
    const kept = readKeys(path).map(({ id }) => id);
    expect(kept).toHaveLength(6);
    expect(kept.at(-1)).toBe(record.id);
  });

  it("takes no other while all are good, and says what to do", () => {
    fill(() => ({}));
    expect(() => createKey(path, wish, dayMs)).toThrow("revoke some");
    expect(readKeys(path)).toHaveLength(10_000);
  });
});

describe("a tenant's name", () => {
  it("is safe as a folder, a label and a part of a URL", () => {
    fc.assert(fc.property(tenants, (name) => isTenant(name) && encodeURIComponent(name) === name));
    for (const name of [
      "",
      "-a",
      "_a",
      "A",
      "a b",
      "a/b",
      "..",
      "a\n",
      "a".repeat(64),
      undefined,
      7,
      ["a"],
    ]) {
      expect(isTenant(name)).toBe(false);
    }
  });
});

describe("the key file", () => {
  const program = (count: number): string => `
    import { createKey } from ${JSON.stringify(new URL("./key.js", import.meta.url))};
    for (let n = 0; n < ${count}; n += 1) {
      const wish = { tenant: "acme", scopes: ["read"], name: "", lifeMs: undefined };
      process.stdout.write(createKey(${JSON.stringify(path)}, wish, 0).record.id + "\\n");
    }`;
  const command = (count: number) =>
    spawn(process.execPath, ["--input-type=module", "-e", program(count)], {
      stdio: ["ignore", "pipe", "inherit"],
    });

  it("is its owner's alone, and so is a folder made for it", () => {
    createKey(path, wish, 0);
    const modeOf = (name: string): number => statSync(name).mode & 0o777;
    expect(modeOf(folder)).toBe(0o700);
    for (const file of readdirSync(folder)) expect([file, modeOf(join(folder, file))]).toEqual([file, 0o600]);
  });

  // Only root may give files away.
  it.skipIf(process.getuid?.() !== 0)("stays the server's when root changes it", () => {
    mkdirSync(folder);
    chownSync(folder, 4321, 4321);
    createKey(path, wish, 0);
    createKey(path, wish, 0);
    for (const file of readdirSync(folder)) expect(statSync(join(folder, file)).uid).toBe(4321);
  });

  it("loses nothing when commands change it at once", async () => {
    const told: string[] = [];
    const commands = Array.from({ length: 4 }, () => command(10));
    for (const one of commands)
      one.stdout.on("data", (chunk) => told.push(...String(chunk).trim().split("\n")));
    expect(await Promise.all(commands.map((one) => once(one, "close")))).toEqual(
      Array.from({ length: 4 }, () => [0, null]),
    );
    expect(
      readKeys(path)
        .map(({ id }) => id)
        .sort(),
    ).toEqual(told.sort());
    expect(told).toHaveLength(40);
  });

  it("is whole, and free for the next command, after one was killed in the middle", async () => {
    const told: string[] = [];
    const killed = command(1e6);
    const enough = new Promise<void>((resolve) => {
      killed.stdout.on("data", (chunk) => {
        told.push(...String(chunk).trim().split("\n"));
        if (told.length >= 20) resolve();
      });
    });
    await enough;
    killed.kill("SIGKILL");
    await once(killed, "close");
    const { record } = createKey(path, wish, 0);
    const kept = readKeys(path).map(({ id }) => id);
    expect(kept).toEqual(expect.arrayContaining([...told, record.id]));
  });

  it.each([
    ["{", "is not JSON"],
    ["null", "format 1"],
    ['{"format":2,"keys":[]}', "format 1"],
    ['{"format":1,"keys":[{}]}', "key 1 is malformed"],
  ])("that is broken stops the start with one line: %s", (text, problem) => {
    createKey(path, wish, 0);
    writeFileSync(path, text);
    expect(() => keyRing(path, systemClock, noTrouble)).toThrow(problem);
  });

  it("with a member that is not possible is refused, whichever it is", () => {
    createKey(path, wish, 0);
    const [good] = readKeys(path);
    const bad = {
      id: "AAAAAAAAAAAA",
      tenant: "../x",
      scopes: ["root"],
      name: null,
      created_at: "soon",
      expires_at: 5,
      revoked_at: "",
      hash: "",
    };
    for (const [member, value] of Object.entries(bad)) {
      writeFileSync(path, JSON.stringify({ format: 1, keys: [{ ...good, [member]: value }] }));
      expect(() => readKeys(path), member).toThrow("key 1 is malformed");
    }
    writeFileSync(path, JSON.stringify({ format: 1, keys: [good, good] }));
    expect(() => readKeys(path)).toThrow("two keys");
  });
});

describe("a running server", () => {
  const soon = { timeout: 2000, interval: 20 };

  it("takes a new key and drops a revoked or removed one within two seconds", async () => {
    const ring = ringAt();
    const first = createKey(path, wish, 0);
    const second = createKey(path, wish, 0);
    expect(ring.isRevoked(`key:${first.record.id}`)).toBe(true);
    await vi.waitFor(() => ring.check(first.key), soon);
    expect(ring.isRevoked(`key:${first.record.id}`)).toBe(false);

    revokeKey(path, first.record.id, 0);
    await vi.waitFor(() => expect(ring.isRevoked(`key:${first.record.id}`)).toBe(true), soon);
    expect(await outcome(ring, first.key)).toBe("KAI-AUTH-TOKEN-0003");
    expect(ring.isRevoked(`key:${second.record.id}`)).toBe(false);

    writeFileSync(path, '{"format":1,"keys":[]}');
    await vi.waitFor(() => expect(ring.isRevoked(`key:${second.record.id}`)).toBe(true), soon);
    expect(await outcome(ring, second.key)).toBe("KAI-AUTH-TOKEN-0002");
  });

  it("keeps its keys when the file breaks, says so once, and goes on when it is mended", async () => {
    const { key, record } = createKey(path, wish, 0);
    const good = readFileSync(path);
    const troubles: string[] = [];
    const ring = ringAt(systemClock, (problem) => troubles.push(problem));
    writeFileSync(path, good.subarray(0, 50));
    await vi.waitFor(() => expect(troubles).toHaveLength(1), soon);
    expect(troubles[0]).toMatch(/keys\.json is not JSON; the keys read before stay in force/);
    expect(await outcome(ring, key)).toMatchObject({ tenant: "acme" });
    writeFileSync(path, good);
    chmodSync(path, 0o600);
    const next = createKey(path, wish, 0);
    await vi.waitFor(() => ring.check(next.key), soon);
    expect(ring.isRevoked(`key:${record.id}`)).toBe(false);
    expect(troubles).toHaveLength(1);
  });

  it("drops a revoked key also where the file could not be read at first, and says that once", async () => {
    const { record } = createKey(path, wish, 0);
    const troubles: string[] = [];
    let failures = 0;
    const read: typeof readKeys = (file) => {
      if (failures === 0) return readKeys(file);
      failures -= 1;
      throw new Error("EMFILE: too many open files");
    };
    const ring = keyRing(path, systemClock, (problem) => troubles.push(problem), read);
    open.push(ring);
    failures = 2;
    revokeKey(path, record.id, 0);
    await vi.waitFor(() => expect(ring.isRevoked(`key:${record.id}`)).toBe(true), { timeout: 10_000 });
    expect(troubles).toEqual(["EMFILE: too many open files; the keys read before stay in force"]);
  });

  it("lets nobody in when the file is gone, and says so", async () => {
    const { key } = createKey(path, wish, 0);
    const troubles: string[] = [];
    const ring = ringAt(systemClock, (problem) => troubles.push(problem));
    rmSync(path);
    await vi.waitFor(() => expect(troubles).toEqual([`${path} is gone, and with it every key`]), soon);
    expect(await outcome(ring, key)).toBe("KAI-AUTH-TOKEN-0002");
  });

  it("sees an open stream's key expire by the clock alone", () => {
    let nowMs = 0;
    const { record } = createKey(path, { ...wish, lifeMs: 1000 }, 0);
    const ring = ringAt({ ...systemClock, now: () => nowMs });
    nowMs = 999;
    expect(ring.isRevoked(`key:${record.id}`)).toBe(false);
    nowMs = 1000;
    expect(ring.isRevoked(`key:${record.id}`)).toBe(true);
    expect(ring.isRevoked("open")).toBe(true);
  });
});
