import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readSettings } from "./settings.js";

const bin = fileURLToPath(new URL("../bin/runwire.js", import.meta.url));

describe("settings", () => {
  let folder: string;
  let before: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "runwire-settings-"));
    before = process.cwd();
    process.chdir(folder);
  });
  afterEach(() => {
    process.chdir(before);
    rmSync(folder, { recursive: true });
  });

  it("come from flags, then variables, then the file, then the defaults", () => {
    writeFileSync("runwire.config.json", '{"port": 1, "durability": "os", "log": "info"}');
    const settings = readSettings({ port: "3" }, { RUNWIRE_PORT: "2", RUNWIRE_LOG: "debug", HOME: "/" });
    expect(settings).toMatchObject({ port: 3, log: "debug", durability: "os", host: "127.0.0.1" });
  });

  it.each([
    [{ port: "65536" }, {}, "--port"],
    [{ host: "0.0.0.0" }, {}, "--host"],
    [{ graceMs: "soon" }, {}, "--grace-ms"],
    [{}, { RUNWIRE_PORT: "" }, "RUNWIRE_PORT"],
    [{}, { RUNWIRE_PROT: "1" }, "RUNWIRE_PROT"],
  ])("that are not possible are named: %j %j", (flags, env, named) => {
    expect(() => readSettings(flags, env)).toThrow(named);
  });

  it("leave the variables of the other commands alone", () => {
    expect(readSettings({}, { RUNWIRE_URL: "http://127.0.0.1:1", RUNWIRE_KEY: "rw_x" }).port).toBe(4700);
  });

  it.each(["{", "[]", '{"prot": 1}', '{"port": "x"}'])("in a wrong file are named: %s", (text) => {
    writeFileSync("runwire.config.json", text);
    expect(() => readSettings({}, {})).toThrow("runwire.config.json");
  });

  it("that are wrong stop the start with one line and exit code 1", () => {
    const { status, stderr, stdout } = spawnSync(process.execPath, [bin, "serve", "--port", "x"], {
      encoding: "utf8",
    });
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(stderr).toContain("--port");
  });

  it("are all listed by --help, with their variables", () => {
    const { status, stdout } = spawnSync(process.execPath, [bin, "serve", "--help"], { encoding: "utf8" });
    expect(status).toBe(0);
    for (const name of [
      "--port",
      "RUNWIRE_PORT",
      "--data",
      "RUNWIRE_DATA",
      "--durability",
      "--log",
      "--grace-ms",
    ]) {
      expect(stdout).toContain(name);
    }
  });
});
