// A day in which little happens: what is seldom due is due. Runs are idle for hours with readers who wait, a laptop sleeps,
// a request expires, a producer never comes back, and what ended long enough ago is erased.

import type { Draft } from "@runwire/protocol";
import { expect } from "vitest";
import type { Key } from "../suites/store/under-test.js";
import { followList } from "./feeding.js";
import type { Life } from "./lives.js";
import { server } from "./network.js";
import { produce } from "./producing.js";
import { read } from "./reading.js";
import type { World } from "./world.js";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** Of the settings that a day is lived with. */
export const retentionDays = 1;

export interface Day {
  readonly life: Life;
  /** What has become of what ended: is it erased, and was it to be? */
  expectKept(isErased: (key: Key) => Promise<boolean>): Promise<void>;
}

export function day(hours: number): Day {
  const ended: (Key & { readonly atMs: number })[] = [];
  let overMs = 0;

  const life: Life = (world, told) => {
    told.feedings.push(followList(world, "somebody"));
    world.begin("a long run", async () => {
      const drafts = longStory(world, hours);
      const made = await produce(world, "long", drafts, { lease_ms: 2 * hourMs, everyMs: 20 * minuteMs });
      told.productions.push(made);
      for (const name of ["one", "another", "a third"]) told.readings.push(read(world, name, made.run_id));
      const laptop = "a laptop";
      told.readings.push(world.time.as(laptop, () => read(world, "on a laptop", made.run_id)));
      world.begin("the laptop sleeps", async () => {
        await world.sleep(world.whole(minuteMs, 30 * minuteMs));
        world.time.standStill(laptop);
        await world.sleep(hourMs);
        if (world.whole(0, 1) === 0) world.network.cutAll(laptop);
        world.time.goOn(laptop);
      });
    });
    world.begin("one that nobody writes on", async () => {
      const made = await produce(world, "left", short(1), { lease_ms: hourMs / 2, goneAfter: 0 });
      told.productions.push(made);
      told.readings.push(read(world, "of what is left", made.run_id));
    });
    world.begin("short ones", async () => {
      for (let hour = 0; hour < hours; hour += 2) {
        const made = await produce(world, `short-${hour}`, short(hour));
        while ((await world.persistently(() => world.api.getRun(made.run_id))).state !== "done")
          await world.sleep(1000);
        ended.push({ tenant: made.tenant, run_id: made.run_id, atMs: world.time.ms });
        await world.sleep(2 * hourMs);
      }
      overMs = world.time.ms;
    });
    world.begin("what happens to the server", async () => {
      await world.sleep(world.whole(minuteMs, hourMs));
      world.time.standStill(server);
      await world.sleep(10 * minuteMs);
      world.time.goOn(server);
      await world.sleep(world.whole(minuteMs, 30 * minuteMs));
      world.kill();
      await world.start();
      world.time.jump(world.pick([-hourMs, 3 * hourMs]));
    });
  };

  return {
    life,
    async expectKept(isErased) {
      for (const { tenant, run_id, atMs } of ended) {
        const ageMs = overMs - atMs;
        const isOld = ageMs > retentionDays * 24 * hourMs;
        // What a clock that was set, or a server that stood still, leaves open is not decided here.
        if (isOld && ageMs < (retentionDays * 24 + 4) * hourMs) continue;
        expect([run_id, ageMs, await isErased({ tenant, run_id })]).toEqual([run_id, ageMs, isOld]);
      }
    },
  };
}

function short(n: number): readonly Draft[] {
  return [
    { type: "text.delta", payload: { text: `hour ${n}`, n: 1 } },
    { type: "run.lifecycle", payload: { state: "done" } },
  ] as unknown as readonly Draft[];
}

/** A word every twenty minutes, and a request that nobody answers in time. */
function longStory(world: World, hours: number): readonly Draft[] {
  const drafts: Draft[] = Array.from(
    { length: hours * 3 },
    (_, i) => ({ type: "text.delta", payload: { text: `${i} `, n: i + 1 } }) as unknown as Draft,
  );
  const expires_at = new Date(world.time.clock.now() + 45 * minuteMs).toISOString();
  drafts[0] = {
    type: "approval.requested",
    payload: { approval_id: "appr_late", expires_at, n: 1 },
  } as unknown as Draft;
  return [...drafts, { type: "run.lifecycle", payload: { state: "done" } }];
}
