// The built-in agent across runs: what it takes up from a fork, and from the turns before.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Event, type Facts, is } from "@runwire/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { allEvents, call, control } from "./calls.js";
import { readAll, streamPath } from "./readers.js";
import { type ServerProcess, startServer } from "./server-process.js";

const folder = mkdtempSync(join(tmpdir(), "runwire-turns-"));
const cli = fileURLToPath(new URL("../../../cli/bin/runwire.js", import.meta.url));
let server: ServerProcess;

beforeAll(async () => {
  server = await startServer([process.execPath, cli, "serve"], folder);
});

afterAll(async () => {
  server.kill("SIGTERM");
  await server.exited;
  rmSync(folder, { recursive: true });
});

async function start(asked: Facts): Promise<string> {
  const { status, body, text } = await call(server.url, "POST", "/v1/agent/runs", asked);
  expect([status, text]).toEqual([201, text]);
  return body.run_id as string;
}

/** Its own events, once it has ended. */
async function ended(run_id: string): Promise<readonly Event[]> {
  await readAll("sse", server.url, streamPath({ run_id }));
  const events = await allEvents(server.url, run_id, { detail: "default" });
  return events.filter(({ child_id }) => child_id === null);
}

const answerIn = (events: readonly Event[]): string | undefined =>
  events.flatMap((e) => (is(e, "message.settled") ? [e.payload.text] : [])).at(-1);

describe("a fork of the agent's run", () => {
  it("is the agent's too, and goes on from what its tools had found [RW-FORK-1] [RW-FORK-2]", async () => {
    const old = await ended(await start({ prompt: "compare three charting libraries" }));
    const done = old.find((e) => is(e, "step.boundary") && e.payload.step_kind === "fan-in") as Event;
    const { body } = await control(server.url, done.run_id, "fork?dialect=runwire", { at: done.pos });
    const events = await ended(body.run_id as string);
    const types = events.map(({ type }) => type);
    // Its helpers' reports are in the conversation, so it asks for none again.
    expect(types).not.toContain("child.spawn");
    expect(types).not.toContain("tool.start");
    expect(answerIn(events)).toBe(answerIn(old));
    expect(events.at(-1)?.payload).toMatchObject({ state: "done" });
  });
});
