// A tool that a person has approved, on a server that is killed before it has ended. Whenever that is, the tool has run
// once or not at all, and the run says so.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Event, Facts } from "@runwire/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { control } from "./calls.js";
import { openReading, streamPath } from "./readers.js";
import { ended, lastState, ofType, start, waitFor } from "./scripted.js";
import { type ServerProcess, startServer } from "./server-process.js";

const cli = fileURLToPath(new URL("../../../cli/bin/runwire.js", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "runwire-approved-"));
let server: ServerProcess;

const points = ["pre_tool_use", "post_tool_use"] as const;
type Point = (typeof points)[number];

/** Where this file is, the hook of that point takes it away and kills its server. */
const armed = (point: Point): string => join(folder, point);
const hooks = points.map((point) => ({
  point,
  name: point,
  command: ["/bin/sh", "-c", 'rm "$1" 2>/dev/null && kill -9 "$PPID"; exit 0', "hook", armed(point)],
}));

const open = (): Promise<ServerProcess> =>
  startServer([process.execPath, cli, "serve"], folder, ["--hooks", JSON.stringify(hooks)]);

beforeAll(async () => {
  server = await open();
});

afterAll(async () => {
  await server.kill("SIGKILL");
  rmSync(folder, { recursive: true });
});

interface Asking {
  readonly run_id: string;
  readonly approval_id: unknown;
}

/** A run of the demo that waits for somebody's word. */
async function asking(): Promise<Asking> {
  const prompt = "compare three charting libraries and save it";
  const run_id = await start(server.url, prompt, { approvals: "destructive", tools: ["file.write"] });
  const [request] = await waitFor(server.url, run_id, "approval.requested");
  return { run_id, approval_id: request?.approval_id };
}

/** With arguments by which the tool counts its runs. */
async function approve({ run_id, approval_id }: Asking): Promise<number> {
  const input = { path: "runs", content: "run\n", append: true };
  return (await control(server.url, run_id, `approvals/${approval_id}`, { decision: "once", input })).status;
}

function runsOf(run_id: string): number {
  const file = join(folder, "workspaces", "default", run_id, "runs");
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").length - 1 : 0;
}

function fromAnswerOn(events: readonly Event[]): readonly Event[] {
  const at = events.findIndex(({ type }) => type === "approval.resolved");
  return at < 0 ? [] : events.slice(at);
}

/** Approves, and goes on once the server is gone. What the person is told then says nothing: they ask again. */
async function approveAndDie(one: Asking, dies: () => Promise<unknown> = () => server.exited): Promise<void> {
  const answer = approve(one).catch(() => undefined);
  await dies();
  await server.exited;
  await answer;
  server = await open();
  expect(await approve(one)).toBe(200);
  // One after the other: no other run's tool meets the next kill.
  await waitFor(server.url, one.run_id, "tool.end");
}

const interrupted = "KAI-RUN-TOOL-0001";

/** How often the tool has run, and what the run says about it. */
async function outcome({ run_id }: Asking): Promise<readonly [runs: number, said: unknown]> {
  const events = await ended(server.url, run_id);
  expect(lastState(events)).toMatchObject({ state: "done" });
  const once = ["approval.resolved", "tool.start", "tool.end"] as const;
  expect(once.map((type) => ofType(events, type).length)).toEqual([1, 1, 1]);
  const [{ ok, error }] = ofType(events, "tool.end") as [Facts];
  return [runsOf(run_id), ok === true ? "ran" : (error as Facts).code];
}

const lawful: readonly unknown[] = [
  [1, "ran"],
  [1, interrupted],
  [0, interrupted],
];

describe("an approved tool", () => {
  it("runs at most once, and the run says so, at whichever event until its end the server is killed", async () => {
    const calm = await asking();
    expect(await approve(calm)).toBe(200);
    const undisturbed = fromAnswerOn(await ended(server.url, calm.run_id));
    const count = undisturbed.findIndex(({ type }) => type === "tool.end") + 1;
    expect(await outcome(calm)).toEqual([1, "ran"]);
    // At 0 nobody knows whether the answer has come to the server at all.
    const all = await Promise.all(Array.from({ length: count + 1 }, asking));
    for (const [n, one] of all.entries()) {
      const path = streamPath({ run_id: one.run_id, dialect: "runwire", detail: "full" });
      const reading = await openReading("ndjson", server.url, path);
      await approveAndDie(one, async () => {
        await reading.until(({ events }) => fromAnswerOn(events).length >= n);
        server.kill("SIGKILL");
      });
    }
    for (const [n, one] of all.entries()) expect(lawful, `killed at ${n}`).toContainEqual(await outcome(one));
  });

  it.each([
    ["before it has started: then it runs after the next start", "pre_tool_use", "ran"],
    ["when it has done its work, and nobody is told of that any more", "post_tool_use", interrupted],
  ] as const)("runs once where the server is killed %s", async (_, point, said) => {
    const one = await asking();
    writeFileSync(armed(point), "");
    await approveAndDie(one);
    expect(await outcome(one)).toEqual([1, said]);
  });
});
