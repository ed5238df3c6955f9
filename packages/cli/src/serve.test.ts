import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { selfSigned } from "./testing/certificate.js";
import { bin, runwireIn } from "./testing/command.js";

const dayMs = 86_400_000;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "runwire-serve-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return name;
}

describe("runwire serve", () => {
  it("names the file of a certificate or key that it cannot use, in one line", () => {
    const pair = () => selfSigned(new Date(Date.now() - dayMs), new Date(Date.now() + dayMs));
    const [one, other] = [pair(), pair()];
    const cert = file("cert.pem", one.certificate);
    const key = file("key.pem", one.key);
    const lineOf = (tlsCert: string, tlsKey: string): string => {
      const args = ["serve", "--port", "0", "--tls-cert", tlsCert, "--tls-key", tlsKey];
      const { status, stderr } = runwireIn(folder, args);
      expect(status).toBe(1);
      expect(stderr.trim().split("\n")).toHaveLength(1);
      return stderr;
    };
    expect(lineOf("none.pem", key)).toContain("none.pem cannot be read");
    expect(lineOf(key, key)).toContain("key.pem is no certificate");
    expect(lineOf(cert, cert)).toContain("cert.pem is no key");
    expect(lineOf(cert, file("other.pem", other.key))).toContain(
      "cert.pem and other.pem do not belong together",
    );
  });

  it("serves on where nobody reads what it prints", async () => {
    const args = ["serve", "--port", "0", "--data", join(folder, "data"), "--log", "info"];
    const child = spawn(process.execPath, [bin, ...args], { cwd: folder });
    const exited = once(child, "exit");
    child.stdout.destroy();
    let err = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err += text;
    });
    const port = () => /"what":"started".*?:(\d+)/.exec(err)?.[1];
    await expect.poll(port, { timeout: 20_000 }).toBeDefined();
    for (let asked = 0; asked < 3; asked += 1)
      expect((await fetch(`http://127.0.0.1:${port()}/livez`)).status).toBe(200);
    child.kill("SIGTERM");
    expect(await exited).toEqual([0, null]);
    expect(err).toContain('"what":"stopped"');
  });

  it("does not start with a model that no run could have, and says so in one line", () => {
    for (const [env, says] of [
      [{ RUNWIRE_MODEL: "foo" }, "RUNWIRE_MODEL: unknown model: foo"],
      [{ RUNWIRE_MODEL: "openai/gpt-5" }, "needs OPENAI_API_KEY"],
      [{ RUNWIRE_OPENAI_BASE_URL: "notaurl" }, "RUNWIRE_OPENAI_BASE_URL is no http or https address"],
    ] as const) {
      const { status, stderr } = runwireIn(folder, ["serve", "--port", "0"], env);
      expect([env, status]).toEqual([env, 1]);
      expect(stderr.trim().split("\n")).toHaveLength(1);
      expect(stderr).toContain(says);
    }
  });

  it("says in one line that a folder cannot be made, also where the system says it oddly", () => {
    for (const command of [
      ["serve", "--port", "0"],
      ["keys", "create", "--tenant", "a", "--scopes", "read"],
    ]) {
      for (const data of ["/proc/nowhere/data", "/dev/null/data"]) {
        const { status, stderr } = runwireIn(folder, [...command, "--data", data]);
        expect([command, data, status]).toEqual([command, data, 1]);
        expect(stderr.trim().split("\n")).toHaveLength(1);
        expect(stderr).toContain(data);
      }
    }
  });
});
