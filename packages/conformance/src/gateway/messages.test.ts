// What a client passes on of a run, in any dialect, through a network that breaks: the stream as it is.

import { followMessages, followRuns, type RunChange } from "@runwire/client";
import { dialects, type Message } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { beforeAll, describe, expect, it } from "vitest";
import { faultProxy } from "../fault-proxy.js";
import { append, createRun, lifecycle, text } from "./calls.js";
import { chance } from "./chance.js";
import { readAll, streamPath } from "./readers.js";
import { record, storyOfEveryType } from "./story.js";
import { underTest } from "./under-test.js";

const server = underTest(startGateway);
const luck = chance("messages");
const random = (): number => 0;

describe("a client that passes messages on", () => {
  let run_id: string;

  beforeAll(async () => {
    run_id = await record(server.url, storyOfEveryType(luck.seed), 20);
  });

  it.each([...dialects.keys()])(
    "has each once and in order, however often it is cut off: %s [RW-CURSOR-1]",
    async (dialect) => {
      const said = await readAll("sse", server.url, streamPath({ run_id, dialect }));
      const { proxy, cuts } = await breaking(12);
      const had = await whole(followMessages({ base: proxy.url, run_id, dialect, random }));
      expect(had).toEqual(said.heard);
      expect(cuts()).toBeGreaterThan(0);
      const after = luck.whole(1, had.length - 1);
      const rest = followMessages({ base: server.url, run_id, dialect, after, random });
      expect(await whole(rest)).toEqual(had.slice(after));
      await proxy.close();
    },
  );

  it("begins with the snapshot it asked for, also where the first connections bring nothing [RW-RUNTIME-8]", async () => {
    const { proxy } = await breaking(4, 200);
    const had = await whole(followMessages({ base: proxy.url, run_id, snapshot: true, after: 2, random }));
    const types = had.map(({ data }) => (JSON.parse(data) as { type: string }).type);
    expect(types[0]).toBe("snapshot.updated");
    expect(types.at(-1)).toBe("run.status");
    await proxy.close();
  });

  it("hears of every run of the list, through cuts too", async () => {
    const { proxy } = await breaking(6, 3000);
    const left = new AbortController();
    const changes: RunChange[] = [];
    const made: string[] = [];
    for await (const batch of followRuns({ base: proxy.url, signal: left.signal, random })) {
      changes.push(...batch);
      if (made.length < 5) {
        const live = await createRun(server.url);
        await append(server.url, live, text("hi"), lifecycle("done"));
        made.push(live);
      } else if (changes.filter((one) => one.kind === "change" && one.run_id === made[4]).length === 3) break;
    }
    expect(changes[0]).toMatchObject({ kind: "snapshot", reset: false });
    const told = changes.slice(1);
    expect(told.map(({ pos }) => pos)).toEqual(told.map((_, i) => (changes[0]?.pos ?? 0) + 1 + i));
    for (const live of made) {
      const own = told.flatMap((one) => (one.kind === "change" && one.run_id === live ? [one.type] : []));
      expect(own).toEqual(["run.lifecycle", "turn.submitted", "run.lifecycle"]);
    }
    await proxy.close();
  });
});

async function whole(batches: AsyncIterable<readonly Message[]>): Promise<readonly Message[]> {
  const had: Message[] = [];
  for await (const batch of batches) had.push(...batch);
  return had;
}

/** Its first connections end somewhere in their answers, between two bytes of a character too. */
async function breaking(count: number, bytesMax = 8000) {
  const { hostname, port } = new URL(server.url);
  const proxy = await faultProxy({ host: hostname, port: Number(port) }, (n) =>
    n < count ? { cut: { afterBytes: luck.whole(0, bytesMax), how: luck.pick(["fin", "rst"]) } } : {},
  );
  return { proxy, cuts: () => proxy.counters.cuts };
}
