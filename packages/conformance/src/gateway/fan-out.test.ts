// FAN-OUT: readers that join at any moment see one order, no gap, no repeat.

import { startGateway } from "@runwire/server";
import { expect, it } from "vitest";
import { allEvents, append, createRun, lifecycle, say, text } from "./calls.js";
import { chance, isSoak } from "./chance.js";
import { closeOf, openReading, type Reading, readAll, streamPath, wireNames } from "./readers.js";
import { freshChildId } from "./story.js";
import { underTest } from "./under-test.js";

const luck = chance("fan-out");
const server = underTest(startGateway);
const producers = 8;
const rounds = isSoak ? 40 : 3;
const readersPerRound = isSoak ? 250 : 60;

it("readers that join while eight producers append see one order, no gap and no repeat", {
  timeout: 3_600_000,
}, async () => {
  for (let round = 0; round < rounds; round++) {
    const run_id = await createRun(server.url);
    const child_id = freshChildId();
    await append(server.url, run_id, say("child.spawn", { child_id }));
    let joined = 0;
    const produce = async (producer: number): Promise<void> => {
      // Goes on until every reader has joined: each joins between two appends.
      for (let i = 0; joined < readersPerRound; i++) {
        const drafts = Array.from({ length: luck.whole(1, 5) }, (_, n) => {
          const by = luck.whole(0, 1) === 0 ? undefined : child_id;
          return luck.whole(0, 3) === 0
            ? say("step.boundary", { step_index: i, step_kind: "text-only", producer }, by)
            : text(`${producer}.${i}.${n} `, by);
        });
        await append(server.url, run_id, ...drafts);
      }
    };
    const join = async (): Promise<{ address: Parameters<typeof streamPath>[0]; reading: Reading }> => {
      const address = {
        run_id,
        dialect: luck.pick(["koder", "runwire"]),
        detail: luck.pick(["default", "full"]),
        backpressure: "lossless",
      } as const;
      const reading = await openReading(luck.pick(wireNames), server.url, streamPath(address));
      joined += 1;
      return { address, reading };
    };
    const joining = (async () => {
      const readers = [];
      while (joined < readersPerRound) {
        const count = Math.min(luck.whole(1, 8), readersPerRound - joined);
        readers.push(...(await Promise.all(Array.from({ length: count }, join))));
      }
      return readers;
    })();
    const [readers] = await Promise.all([
      joining,
      ...Array.from({ length: producers }, (_, producer) => produce(producer)),
    ]);
    await append(server.url, run_id, lifecycle("done"));
    for (const { address, reading } of readers) {
      const ending = await reading.ended;
      expect(closeOf({ ...reading, events: reading.events, ending })).toBe("finished");
      const stored = await allEvents(server.url, run_id, {
        dialect: address.dialect ?? "",
        detail: address.detail ?? "",
      });
      expect(reading.events.length).toBe(stored.length);
      expect(reading.events).toEqual(stored);
    }
    const full = await allEvents(server.url, run_id);
    expect(full.map(({ pos }) => pos)).toEqual(full.map((_, i) => i + 1));
  }
});

it("a reader that joins at the head between two appends misses neither", { timeout: 3_600_000 }, async () => {
  const seams = isSoak ? 10_000 : 400;
  // A new run each time, so that the first reader of its log opens it while it moves.
  for (let seam = 0; seam < seams; seam++) {
    const run_id = await createRun(server.url);
    const appended = append(server.url, run_id, text("a"), say("title", { title: "t" }), lifecycle("done"));
    const read = await readAll(luck.pick(wireNames), server.url, streamPath({ run_id, dialect: "runwire" }));
    await appended;
    expect(read.events.map(({ pos }) => pos)).toEqual([1, 2, 3, 4, 5, 6]);
  }
});
