import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { keyRing } from "@runwire/server";
import { createKey, readKeys, systemClock } from "@runwire/server/operate";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseDuration } from "./duration.js";
import { listOf } from "./keys.js";
import { paintFor, tabbed, table } from "./terminal.js";
import { runwireIn } from "./testing/command.js";

const keyLine = /^rw_[a-z2-7]{12}_[0-9A-Za-z]{43}\n$/;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "runwire-keys-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const runwire = (args: string, env: NodeJS.ProcessEnv = {}) => runwireIn(folder, args.split(" "), env);

describe("runwire keys", () => {
  it("makes a key that a server takes, lists it without its secret, and takes it back", async () => {
    const made = runwire("keys create --tenant acme --scopes write,read,write --name ci --expires 90d");
    expect(made).toMatchObject({ status: 0, stdout: expect.stringMatching(keyLine) });
    expect(made.stderr).toContain("tenant acme may read, write");
    const key = made.stdout.trim();
    const id = key.slice(3, 15);

    const path = join(folder, ".runwire", "keys.json");
    const check = async () => {
      const ring = keyRing(path, systemClock, expect.fail);
      return ring.check(key).finally(() => ring.close());
    };
    expect(await check()).toMatchObject({ tenant: "acme", credential: `key:${id}` });

    const listed = runwire("keys list --json");
    const [shown] = JSON.parse(listed.stdout) as [{ created_at: string; expires_at: string }];
    expect(shown).toMatchObject({
      id,
      tenant: "acme",
      scopes: ["read", "write"],
      name: "ci",
      state: "active",
    });
    expect(Date.parse(shown.expires_at) - Date.parse(shown.created_at)).toBe(90 * 86_400_000);
    expect(shown).not.toHaveProperty("hash");
    expect(listed.stdout).not.toContain(key.slice(16));

    expect(runwire(`keys revoke ${id}`)).toMatchObject({
      status: 0,
      stderr: expect.stringContaining("is revoked"),
    });
    await expect(check()).rejects.toThrow("revoked");
    expect(runwire(`keys revoke ${key}`).stderr).toContain("was revoked before");
    expect(runwire("keys list").stdout).toMatch(
      /^ID\tTENANT\t.*\n[a-z2-7]{12}\tacme\tread,write\tci\trevoked\t/,
    );
  });

  it("lists the keys of one tenant where one is named", () => {
    for (const tenant of ["acme", "umbrella"]) runwire(`keys create --tenant ${tenant} --scopes read`);
    expect(runwire("keys list --tenant umbrella").stdout.match(/acme|umbrella/g)).toEqual(["umbrella"]);
    expect(JSON.parse(runwire("keys list --tenant nobody --json").stdout)).toEqual([]);
  });

  it("finds the data folder as the server does: flag, variable, file, default", () => {
    const create = "keys create --tenant acme --scopes read";
    writeFileSync(join(folder, "runwire.config.json"), '{"data": "by-file"}');
    runwire(create);
    runwire(create, { RUNWIRE_DATA: "by-variable" });
    runwire(`${create} --data by-flag`, { RUNWIRE_DATA: "by-variable" });
    // What is set for a client does not matter to it.
    expect(runwire(create, { RUNWIRE_DATA: "for-client", RUNWIRE_TOKEN: "x" }).status).toBe(0);
    // Nor does the rest of a server's settings, which may be half here and half in variables.
    writeFileSync(join(folder, "runwire.config.json"), '{"data": "by-file", "host": "0.0.0.0"}');
    expect(runwire(create, { RUNWIRE_AUTH: "keys" }).status).toBe(0);
    const folders = readdirSync(folder).filter((name) => !name.endsWith(".json"));
    expect(folders.sort()).toEqual(["by-file", "by-flag", "by-variable", "for-client"]);
  });

  it.each([
    ["keys create --tenant Acme --scopes read", "--tenant"],
    ["keys create --tenant ../acme --scopes read", "--tenant"],
    ["keys create --tenant acme --scopes read,root", '"root"'],
    ["keys create --tenant acme --scopes ,", "--scopes"],
    ["keys create --tenant acme --scopes read --expires 0d", "--expires"],
    ["keys create --tenant acme --scopes read --expires tomorrow", "--expires"],
    ["keys create --tenant acme --scopes read --expires 101y", "--expires"],
    ["keys create --tenant acme --scopes read --name \u001b[31m", "--name"],
    ["keys create --tenant acme", "--scopes"],
    ["keys create --scopes read", "--tenant"],
    ["keys list --tenant A", "--tenant"],
    ["keys revoke nobody", "not the id of a key"],
    ["keys revoke aaaaaaaaaaaa", "there is no key aaaaaaaaaaaa"],
  ])("says in one line what is wrong with %j, and makes nothing", (args, named) => {
    const { status, stdout, stderr } = runwire(args);
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(stderr).toContain(named);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("does not touch a key file it cannot read", () => {
    const path = join(folder, "keys.json");
    writeFileSync(path, '{"format": 2}');
    const { status, stderr } = runwire("keys create --tenant acme --scopes read --data .");
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining("format 1") });
    expect(readFileSync(path, "utf8")).toBe('{"format": 2}');
    const below = runwire("keys create --tenant acme --scopes read --data keys.json/below");
    expect(below).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^runwire: .*cannot be changed.*\n$/),
    });
  });

  it("explains itself with an example", () => {
    expect(runwire("keys --help").stdout).toContain("KEY=$(runwire keys create");
    expect(runwire("keys create --help").stdout).toContain("--expires 90d");
  });

  it("draws a table with colours on a terminal, and neither into a pipe", () => {
    const path = join(folder, "keys.json");
    const wish = { tenant: "acme", scopes: ["read"], name: "", lifeMs: undefined } as const;
    createKey(path, wish, 0);
    createKey(path, { ...wish, tenant: "umbrella", lifeMs: 1 }, 0);
    const keys = readKeys(path);
    const plain = listOf(keys, { isTTY: true }, { NO_COLOR: "1" }).split("\n");
    expect(plain[0]).toMatch(/^ID {12}TENANT {4}SCOPES {2}NAME {2}STATE {4}CREATED {5}EXPIRES$/);
    expect(plain[1]).toMatch(/^[a-z2-7]{12} {2}acme {6}read {10}active {3}1970-01-01 {2}never$/);
    expect(plain[2]).toMatch(/^[a-z2-7]{12} {2}umbrella {2}read {10}expired {2}1970-01-01 {2}1970-01-01$/);
    const coloured = listOf(keys, { isTTY: true }, {}).split("\n");
    expect(coloured).toEqual([`\u001b[1m${plain[0]}\u001b[0m`, plain[1], `\u001b[90m${plain[2]}\u001b[0m`]);
    expect(listOf(keys, {}, {}).split("\n")[1]).toMatch(
      /^[a-z2-7]{12}\tacme\tread\t\tactive\t1970-01-01\tnever$/,
    );
  });
});

describe("what is written for people", () => {
  it("never carries control characters from the data to the terminal", () => {
    const cells = fc.array(fc.array(fc.string({ unit: "binary" }), { minLength: 2, maxLength: 2 }));
    fc.assert(
      fc.property(cells, (rows) => {
        expect(table(["A", "B"], rows).split("\n")).toHaveLength(rows.length + 1);
        expect(tabbed(["A", "B"], rows).split("\n")).toHaveLength(rows.length + 1);
        expect(table(["A", "B"], rows).replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
      }),
    );
  });

  it("is plain where the stream is no terminal or colours are not wanted", () => {
    expect(paintFor({ isTTY: false }, {})("red", "x")).toBe("x");
    expect(paintFor({ isTTY: true }, { NO_COLOR: "1" })("red", "x")).toBe("x");
    expect(paintFor({ isTTY: true }, {})("red", "x")).toBe("\u001b[31mx\u001b[0m");
  });
});

describe("a duration", () => {
  it("is a count and a unit, up to a hundred years", () => {
    const unit = fc.constantFrom(["m", 60_000], ["h", 3_600_000], ["d", 86_400_000], [
      "w",
      604_800_000,
    ] as const);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5000 }), unit, (count, [letter, ms]) => {
        expect(parseDuration(`${count}${letter}`)).toBe(count * Number(ms));
      }),
    );
    for (const text of [
      "",
      "d",
      "90",
      "-1d",
      "1.5h",
      "01d",
      "1 d",
      "1D",
      "1s",
      "1d2h",
      "999999999y",
      "1e3d",
    ]) {
      expect(parseDuration(text)).toBeUndefined();
    }
  });
});
