import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { bin, pipe } from "./testing/command.js";
import { served } from "./testing/served.js";

const server = served("stdout");
const file = join(server.folder, "run.loom");
const lines = '{"type":"message_chunk","content":"Hello","id":"think"}\n{"reply":"Hello"}\n';
const full = "/dev/full";

let run_id: string;

beforeAll(async () => {
  writeFileSync(file, lines);
  const { out } = await pipe(lines, ["ingest", "--dialect", "loom", "--json"], server.env);
  ({ run_id } = JSON.parse(out) as { run_id: string });
});

async function into(
  stdout: number | "pipe",
  args: readonly string[],
): Promise<{ readonly code: number; readonly err: string }> {
  const child = spawn(process.execPath, [bin, ...args], {
    env: { ...process.env, ...server.env },
    stdio: ["ignore", stdout, "pipe"],
  });
  child.stdout?.destroy();
  let err = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    err += text;
  });
  const [code] = (await once(child, "close")) as [number];
  return { code, err };
}

const commands = (): readonly (readonly string[])[] => [
  ["runs"],
  ["evidence", run_id],
  ["tail", run_id, "--json"],
  ["replay", run_id, "--speed", "max"],
  ["convert", "--from", "loom", "--to", "koder", file],
];

describe("a command whose stdout takes no more", () => {
  it.skipIf(!existsSync(full))("says that a disk is full, and ends with 1", async () => {
    for (const args of commands()) {
      const disk = openSync(full, "w");
      const ended = await into(disk, args);
      closeSync(disk);
      expect([args[0], ended]).toEqual([
        args[0],
        { code: 1, err: "runwire: stdout: there is no space left\n" },
      ]);
    }
  });

  it("leaves without a word where its reader has left", async () => {
    for (const args of commands()) {
      const { code, err } = await into("pipe", args);
      expect([args[0], code, err.includes("Error")]).toEqual([args[0], 0, false]);
    }
  });
});

describe("a command whose stderr takes no more", () => {
  const gone = (args: readonly string[], input: string): Promise<number> => {
    const child = spawn(process.execPath, [bin, ...args], {
      env: { ...process.env, ...server.env },
      stdio: ["pipe", "ignore", "pipe"],
    });
    child.stderr.destroy();
    child.stdin.end(input);
    return once(child, "close").then(([code]) => code as number);
  };

  it("stores all that its input holds", async () => {
    const session = "ses_unheard";
    const code = await gone(["ingest", "--dialect", "loom", "--session", session], `garbage\n${lines}`);
    const { runs } = await server.api.listRuns({ session_id: session });
    expect([code, runs.map(({ state }) => state)]).toEqual([0, ["done"]]);
  });

  it("gives a file its name", async () => {
    const code = await gone(
      ["convert", "--from", "loom", "--to", "koder", "-o", join(server.folder, "run.koder")],
      `garbage\n${lines}`,
    );
    const files = readdirSync(server.folder).filter((name) => name.startsWith("run.koder"));
    expect([code, files]).toEqual([1, ["run.koder"]]);
  });
});
