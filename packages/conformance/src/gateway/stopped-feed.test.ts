// The list of runs keeps so many of its changes. A reader that stands still until some that it has not read are gone must
// not go on behind them as if there were none.

import { limits } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { expect, it } from "vitest";
import { append, createRun, say } from "./calls.js";
import { openReading, type Reading } from "./readers.js";
import { stoppedReader } from "./stopped-reader.js";
import { forwardClock, underTest } from "./under-test.js";

const clock = forwardClock();
const server = underTest(startGateway, {}, clock);
const path = "/v1/agent/runs/stream";
const sign = "at the head";
const pruneEveryMs = 10 * 60 * 1000;

interface Told {
  readonly type: string;
  readonly pos: number;
  readonly reset?: boolean;
}

async function firstAfter(pos: number): Promise<Told> {
  const reading: Reading = await openReading("ndjson", server.url, `${path}?after=${pos}`);
  await reading.until(({ events }) => events.length > 0);
  reading.stop();
  return reading.events[0] as unknown as Told;
}

it("a reader of the run list that stands still while what it has not read is dropped is ended, and told that it begins anew", async () => {
  const run_id = await createRun(server.url, { lease_ms: limits.leaseMsMax });
  const reader = await stoppedReader("sse", server.url, path);
  await append(server.url, run_id, say("title", { title: sign }));
  await reader.stop(sign, 1);
  const titles = Array.from({ length: limits.feedEntriesMax }, (_, n) =>
    say("title", { title: `${n} ${"k".repeat(1000)}` }),
  );
  await append(server.url, run_id, ...titles);
  await append(server.url, run_id, ...titles.slice(0, limits.feedEntriesMax / 2));
  clock.pass(pruneEveryMs);
  await expect.poll(() => firstAfter(1)).toMatchObject({ type: "snapshot", reset: true });

  const { pos: head } = await firstAfter(1);
  const posIn = (line = "{}"): number => (JSON.parse(line) as Told).pos;
  const heard = (await reader.readOn((messages) => posIn(messages.at(-1)) === head)).map(posIn);
  const [from = 0] = heard;
  const last = from + heard.length - 1;
  expect(heard).toEqual(heard.map((_, i) => from + i));
  expect(last).toBeLessThan(head);
  expect(await reader.ended).toBe(true);
  expect(await firstAfter(last)).toMatchObject({
    type: "snapshot",
    reset: true,
    pos: head,
  });
});
