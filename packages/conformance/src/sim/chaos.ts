// What breaks: servers are killed, leave, stand still and start again; disks are full, in doubt, or cannot be read; clocks
// jump.

import { RunwireError } from "@runwire/protocol";
import { expect } from "vitest";
import { doubtedRows, doubts } from "./disk.js";
import { server } from "./network.js";
import type { World } from "./world.js";

export const laptops = ["a laptop"] as const;

/** What happens to servers, for a while: then the world calms down, and everybody can finish. */
export function chaos(world: World, standsStill = false, damagable?: readonly string[]): void {
  world.begin("chaos", async () => {
    for (let left = world.whole(2, 12); left > 0; left--) {
      await world.sleep(world.whole(10, 4000));
      const what =
        damagable === undefined
          ? world.whole(0, standsStill ? 7 : 5)
          : world.pick([0, 1, 2, 4, 5, 6, 8, 8, 8, 9, 9, 10]);
      switch (what) {
        case 0:
          world.kill();
          break;
        case 1:
          await world.leave();
          break;
        case 2:
        case 3:
          await ambushed(world);
          break;
        case 4:
          world.disk.full = true;
          await world.sleep(world.whole(10, 3000));
          world.disk.full = false;
          break;
        case 6:
          await stopped(world, server, world.pick([100, 5000, 60_000, 400_000]));
          break;
        case 7:
          await stopped(world, world.pick(laptops), world.pick([20_000, 600_000, 3_600_000]));
          break;
        case 8:
          await doubted(world);
          break;
        case 9:
          world.reads.failShare = world.pick([0.1, 0.5, 1]);
          await world.sleep(world.whole(10, 10_000));
          world.reads.failShare = 0;
          break;
        case 10:
          world.reads.damaged = world.pick(damagable ?? []);
          await world.sleep(world.whole(10, 10_000));
          world.reads.damaged = undefined;
          break;
        default:
          world.time.jump(world.pick([-3_600_000, 60_000, 86_400_000]));
          world.network.cutAll();
      }
      await world.sleep(world.whole(0, 5000));
      await world.start();
    }
  });
}

/** A process that stands still while time goes on; its connections may not outlive that. */
async function stopped(world: World, owner: string, ms: number): Promise<void> {
  world.time.standStill(owner);
  world.network.strain(owner);
  await world.sleep(ms);
  if (world.whole(0, 1) === 0) world.network.cutAll(owner);
  world.time.goOn(owner);
}

/** Killed right before, or right after, something is stored. */
async function ambushed(world: World): Promise<void> {
  let isStruck = false;
  const callOff = world.disk.ambush(world.pick(["before", "after"]), () => {
    isStruck = true;
    world.kill();
  });
  for (let waits = 0; waits < 100 && !isStruck; waits++) await world.sleep(100);
  callOff();
}

/** Of the next write nobody knows whether it is stored, until somebody starts the server again. */
async function doubted(world: World): Promise<void> {
  const callOff = world.disk.doubt(world.pick(doubts), world.pick([undefined, ...doubtedRows]));
  for (let waits = 0; waits < 100 && !world.disk.isBroken; waits++) await world.sleep(100);
  callOff();
  if (!world.disk.isBroken) return;
  await expectRefusing(world);
  await world.sleep(world.whole(0, 5000));
  if (world.whole(0, 1) === 0) world.kill();
  else await world.leave();
}

/** Nothing is written, and what is stored is read. */
export async function expectRefusing(world: World): Promise<void> {
  const answerTo = async (ask: () => Promise<unknown>): Promise<string> => {
    for (;;) {
      try {
        await ask();
        return "done";
      } catch (error) {
        if (!(error instanceof RunwireError)) throw error;
        if (!error.row.retry || error.code.startsWith("KAI-SERVER")) return error.code;
        await world.sleep(world.whole(10, 500));
      }
    }
  };
  expect(await answerTo(() => world.api.listRuns())).toBe("done");
  const run = world.roots.find((root) => world.audit.log(root, "full").length > 0);
  if (run !== undefined) {
    const { run_id } = run;
    expect(await answerTo(() => world.api.events(run_id))).toBe("done");
    // What would be refused for what is stored is refused for the doubt: what is stored is what nobody knows.
    const draft = { type: "custom", payload: {} };
    const gapped = { id: "stranger", epoch: 1, seq: 2 };
    const refused = await answerTo(() => world.api.appendIn("runwire", run_id, [draft], gapped));
    expect(refused).toBe("KAI-SERVER-STORE-0001");
  }
  const created = await answerTo(() => world.api.createRun({ prompt: "more", producer: "external" }));
  expect(created).toBe("KAI-SERVER-STORE-0001");
}
