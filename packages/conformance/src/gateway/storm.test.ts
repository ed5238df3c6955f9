// A server that comes back, and all of its readers with it in the same moment.

import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { rssBytesOf } from "../proc.js";
import { append, createRun, lifecycle, say, tryAppend } from "./calls.js";
import { chance, isSoak } from "./chance.js";
import { openReading, streamPath, wireNames } from "./readers.js";
import { ownProcess } from "./server-process.js";

const luck = chance("storm");
const readerCount = isSoak ? 3000 : 200;
const eventCount = 500;
/** For each reader, with what it needs to begin; most of it is Node's. */
const readerBytesMax = 64 * 1024;

const runwire = fileURLToPath(new URL("../../../cli/bin/runwire.js", import.meta.url));
const server = ownProcess([process.execPath, runwire, "serve", "--durability", "os"]);

it("every reader of a storm reads the rest of its run, and one too many is told to come later [RW-CURSOR-1] [RW-LIMIT-3]", async () => {
  const run_id = await createRun(server.url);
  const drafts = Array.from({ length: eventCount - 3 }, (_, step_index) =>
    say("step.boundary", { step_index, step_kind: "text-only" }),
  );
  await append(server.url, run_id, ...drafts);
  await server.again("SIGKILL", "--connections-per-tenant-max", String(readerCount));

  const bytesBefore = rssBytesOf(server.pid);
  const open = (after: number) =>
    openReading(luck.pick(wireNames), server.url, streamPath({ run_id, dialect: "runwire", after }));
  const readers = await Promise.all(
    Array.from({ length: readerCount }, async () => {
      const after = luck.whole(0, eventCount - 2);
      return { after, reading: await open(after) };
    }),
  );
  const refused = await open(0);
  await refused.ended;
  // The close of a WebSocket says nothing but why.
  const retryAfter = refused.headers.upgrade === undefined ? "1" : undefined;
  expect([refused.status, refused.headers["retry-after"]]).toEqual([429, retryAfter]);
  for (const { after, reading } of readers) {
    await reading.until(({ events }) => events.length === eventCount - 1 - after);
  }
  if (isSoak) expect(rssBytesOf(server.pid) - bytesBefore).toBeLessThan(readerCount * readerBytesMax);

  const [leaving, ...staying] = readers;
  leaving?.reading.stop();
  await expect.poll(async () => (await tryAppend(server.url, run_id, [lifecycle("done")])).status).toBe(200);
  for (const { after, reading } of staying) {
    expect((await reading.ended).clean).toBe(true);
    expect(reading.events.map(({ pos }) => pos)).toEqual(
      Array.from({ length: eventCount - after }, (_, i) => after + 1 + i),
    );
  }
  expect(server.stderr).toBe("");
});
