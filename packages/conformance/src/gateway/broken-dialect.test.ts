// A dialect with a bug in it. Its readers find their streams broken; nobody else notices.

import { type Dialect, dialects, type Message, runwire } from "@runwire/protocol";
import { afterAll, beforeAll, expect, it } from "vitest";
import { append, call, createRun, lifecycle, say, text } from "./calls.js";
import { openReading, streamPath } from "./readers.js";
import { underTest } from "./under-test.js";

const known = dialects as Map<string, Dialect>;
const broken: Dialect = {
  ...(runwire as Dialect),
  name: "broken",
  step(state, e): [typeof state, readonly Message[]] {
    if (e.type === "custom") throw new Error("cannot say that");
    return [state, [{ id: String(e.pos), data: JSON.stringify(e) }]];
  },
};

// The server looks which dialects there are when it is loaded.
known.set(broken.name, broken);
const { startGateway } = await import("@runwire/server");
const server = underTest(startGateway, { log: "error" as const });
const lines: string[] = [];
const { write } = process.stderr;

beforeAll(() => {
  process.stderr.write = (line: string | Uint8Array) => {
    lines.push(String(line));
    return true;
  };
});
afterAll(() => {
  process.stderr.write = write;
  known.delete(broken.name);
});

it("an event that a dialect cannot say breaks that stream, and no other [RW-CLOSE-3]", async () => {
  const run_id = await createRun(server.url);
  const sound = await openReading("sse", server.url, streamPath({ run_id }));
  const live = await openReading("sse", server.url, streamPath({ run_id, dialect: broken.name }));
  await append(server.url, run_id, text("before"), say("custom", { value: 1 }));
  expect(await live.ended).toMatchObject({ clean: false });
  // From the store, too.
  const late = await openReading("sse", server.url, streamPath({ run_id, dialect: broken.name }));
  expect(await late.ended).toMatchObject({ clean: false });
  await append(server.url, run_id, text("after"), lifecycle("done"));
  expect(await sound.ended).toMatchObject({ clean: true });
  expect(sound.events.at(-1)).toMatchObject({ type: "run.lifecycle", payload: { state: "done" } });
  expect((await call(server.url, "GET", "/livez")).status).toBe(200);
  const told = lines.filter((line) => line.includes("cannot say that"));
  expect(told.length).toBe(2);
  expect(told[0]).toContain("broken/sse");
});
