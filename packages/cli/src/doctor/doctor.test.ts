import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createKey } from "@runwire/server";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { allDefaults } from "../setting-rows.js";
import { paintFor } from "../terminal.js";
import { selfSigned } from "../testing/certificate.js";
import { bin, runwireIn, start } from "../testing/command.js";
import { loopback } from "../testing/loopback.js";
import { type Serving, serve } from "../testing/served.js";
import { examine, write } from "./doctor.js";
import { doubtful, type Finding, right, wrong } from "./finding.js";

let folder: string;
const servers: Serving[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "runwire-doctor-"));
});
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop("SIGKILL");
  rmSync(folder, { recursive: true });
});

interface Told {
  readonly status: number | null;
  readonly ok: boolean;
  readonly findings: readonly Finding[];
  about(word: string): readonly Finding[];
}

function doctor(args: readonly string[], env: NodeJS.ProcessEnv = {}): Told {
  const { status, stdout, stderr } = runwireIn(folder, ["doctor", "--json", ...args], env);
  expect(stderr).toBe("");
  const { ok, findings } = JSON.parse(stdout) as Told;
  return { status, ok, findings, about: (word) => findings.filter(({ about }) => about === word) };
}

/** On the folder that commands call `mine`. */
async function serveMine(...flags: readonly string[]): Promise<Serving> {
  const server = await serve(join(folder, "mine"), ...flags);
  servers.push(server);
  return server;
}

async function freePort(): Promise<string> {
  const { port, close } = await loopback(createServer());
  await close();
  return String(port);
}

describe("runwire doctor", () => {
  it("finds nothing wrong before the first start, and changes nothing", async () => {
    const { status, ok, about } = doctor(["--port", await freePort()]);
    expect({ status, ok }).toEqual({ status: 0, ok: true });
    expect(about("data folder")[0]?.says).toMatch(/\.runwire is not there yet/);
    expect(about("port")[0]).toMatchObject({ result: "right", says: expect.stringMatching(/is free$/) });
    expect(() => rmSync(join(folder, ".runwire"))).toThrow("ENOENT");
  });

  it("tells a server that has the data from one that has not, and from none", async () => {
    const { port, stop } = await serveMine();
    const here = doctor(["--data", "mine", "--port", port]);
    expect(here.about("server")).toEqual([
      right("server", `answers at http://127.0.0.1:${port}, ready, durability fsync`),
    ]);
    expect(here.about("database")[0]).toMatchObject({ result: "right" });
    expect(here.about("data folder")).toMatchObject([{ result: "right" }]);
    expect(here.status).toBe(0);

    const elsewhere = doctor(["--data", "mine", "--port", await freePort()]).about("server");
    expect(elsewhere).toMatchObject([{ result: "doubtful", says: expect.stringContaining("none answers") }]);
    expect(doctor(["--data", "other", "--port", port]).about("server")).toMatchObject([
      { result: "doubtful", says: expect.stringContaining("another data folder") },
    ]);

    await stop();
    const after = doctor(["--data", "mine", "--port", port]);
    expect(after.about("server")).toEqual([right("server", "none runs on the data folder")]);
    expect(after.about("port")).toMatchObject([{ result: "right" }]);
  });

  it("sees a server with keys and TLS through the same flags", async () => {
    const dayMs = 86_400_000;
    const { certificate, key } = selfSigned(new Date(Date.now() - dayMs), new Date(Date.now() + 90 * dayMs));
    writeFileSync(join(folder, "cert.pem"), certificate);
    writeFileSync(join(folder, "key.pem"), key, { mode: 0o600 });
    const flags = ["--auth", "keys", "--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    // The server is in another folder.
    const { port } = await serveMine(...flags.map((flag) => flag.replace(/.*\.pem$/, join(folder, "$&"))));
    const before = doctor(["--data", "mine", "--port", port, ...flags]);
    expect(before.about("server")).toMatchObject([
      { result: "right", says: `answers at https://127.0.0.1:${port}, ready, durability fsync` },
    ]);
    expect(before.about("keys")).toMatchObject([
      { result: "wrong", says: "no key is good: nobody can come in" },
    ]);
    createKey(
      join(folder, "mine", "keys.json"),
      { tenant: "acme", scopes: ["read"], name: "", lifeMs: undefined },
      Date.now(),
    );
    const after = doctor(["--data", "mine", "--port", port, ...flags]);
    expect(after.findings.filter(({ result }) => result === "wrong")).toEqual([]);
    expect(after.about("tls")).toMatchObject([{ result: "right" }]);
  });

  it("says of settings that contradict each other what each check would", () => {
    const { status, about } = doctor(["--host", "0.0.0.0", "--port", "0", "--tls-cert", "cert.pem"]);
    expect(status).toBe(1);
    expect(about("settings")).toMatchObject([{ result: "right" }]);
    expect(about("models")).toMatchObject([{ result: "right", says: expect.stringContaining("the demo") }]);
    const badly = doctor(["--data", "data"], { RUNWIRE_MODEL: "foo" });
    expect(badly.about("models")).toMatchObject([{ result: "wrong", says: expect.stringContaining("foo") }]);
    expect(about("access")).toMatchObject([{ result: "wrong" }]);
    expect(about("tls")).toMatchObject([{ result: "wrong" }]);
  });

  it("says who else has the port", async () => {
    const { port, close } = await loopback(createServer((_request, response) => response.end("hello")));
    const { code, out } = await start(["doctor", "--json", "--port", String(port), "--data", folder]).exited;
    await close();
    const { findings } = JSON.parse(out) as Told;
    expect(code).toBe(1);
    expect(findings.filter(({ about }) => about === "port")).toMatchObject([
      { result: "wrong", says: `port ${port} is taken by another program` },
    ]);
  });

  it("names every setting that is bad or unknown, and still checks the rest", () => {
    writeFileSync(join(folder, "runwire.config.json"), '{"prot": 1}');
    mkdirSync(join(folder, "data"), { mode: 0o755 });
    chmodSync(join(folder, "data"), 0o755);
    const env = { RUNWIRE_PORT: "x", RUNWIRE_PROT: "1" };
    const { status, about } = doctor(["--data", "data", "--port", "y"], env);
    expect(status).toBe(1);
    const said = about("settings").map(({ says }) => says);
    expect(said).toEqual([expect.stringContaining('runwire.config.json: there is no setting "prot"')]);
    expect(about("data folder")).toMatchObject([
      { result: "doubtful", todo: expect.stringContaining("chmod 700") },
    ]);

    rmSync(join(folder, "runwire.config.json"));
    const named = doctor(["--data", "data", "--port", "y"], env).about("settings");
    expect(named.map(({ says }) => says.split(":")[0]).sort()).toEqual([
      "--port",
      "RUNWIRE_PORT",
      "RUNWIRE_PROT",
    ]);
  });

  it("goes on where one check cannot be made", async () => {
    const found = await examine(
      { settings: allDefaults, env: {}, nowMs: 0 },
      {
        a: () => {
          throw new Error("EIO");
        },
        b: async () => Promise.reject(new Error("EPERM")),
        c: () => [right("c", "fine")],
      },
    );
    expect(found).toMatchObject([
      { result: "wrong", about: "a", says: "this could not be checked (EIO)" },
      { result: "wrong", about: "b", says: "this could not be checked (EPERM)" },
      { result: "right", about: "c" },
    ]);
  });

  it("warns where a process may have few files open", () => {
    const command = `ulimit -n 1024; exec "${process.execPath}" "${bin}" doctor --port 0`;
    const { stdout, status } = spawnSync("sh", ["-c", command], { cwd: folder, encoding: "utf8" });
    expect(status).toBe(0);
    if (process.platform === "linux") expect(stdout).toMatch(/^! open files +a process may have 1024 files/m);
    expect(stdout).not.toContain("\u001b");
  });

  it("writes a mark, what it is about, what is so and what to do", () => {
    const findings = [right("a", "fine"), doubtful("bcd", "odd\u001b[2J", "look"), wrong("e", "bad", "mend")];
    expect(write(findings, paintFor({}, {}))).toBe(
      [
        "✓ a    fine",
        "! bcd  odd�[2J",
        "       → look",
        "✗ e    bad",
        "       → mend",
        "",
        "1 wrong, 1 doubtful, 1 right.",
      ].join("\n"),
    );
    expect(write(findings, paintFor({ isTTY: true }, {}))).toContain("\u001b[31m✗\u001b[0m e");
    expect(write([right("a", "fine")], paintFor({}, {}))).toContain("All is well.");
  });
});
