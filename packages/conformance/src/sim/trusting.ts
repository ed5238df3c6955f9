// One who writes a draft at a time and takes every answer at its word: what is refused is not stored, unless the answer
// says that nobody knows, or there was none.

import { type Draft, RunwireError } from "@runwire/protocol";
import { beginRun, expectAlways, type Production } from "./producing.js";
import type { World } from "./world.js";

/** Store unavailable, or nobody answered. */
const inDoubt: ReadonlySet<number> = new Set([499, 502, 503]);

export async function trust(world: World, name: string, length: number): Promise<Production> {
  const said = Array.from({ length }, (_, i) => ({ type: "custom", payload: { text: `${i}`, n: i + 1 } }));
  const drafts = [...said, { type: "run.lifecycle", payload: { state: "done" } }] as unknown as Draft[];
  const made = await beginRun(world, name, drafts);
  const { run_id } = made;
  expectAlways(world, made);
  world.begin(`trusting producer of ${name}`, async () => {
    for (const [i, draft] of drafts.entries()) {
      const stored = (): number => world.audit.log(made, "full").length;
      let mayBe = false;
      for (let isStored = false; !isStored; ) {
        const saidMs = world.time.ms;
        const before = stored();
        try {
          await world.api.appendIn("runwire", run_id, [draft], { id: "p", epoch: 1, seq: i + 1 });
          made.acknowledged = i + 1;
          made.contactMs = saidMs;
          isStored = true;
        } catch (error) {
          if (error instanceof RunwireError && error.code === "KAI-RUN-ENDED-0001") {
            made.isOver = true;
            return;
          }
          if (!world.mayPass(error)) throw error;
          mayBe ||= inDoubt.has((error as RunwireError).row.status);
          await world.sleep(world.whole(0, 2000));
          if (!mayBe && stored() > before)
            throw new Error(
              `${run_id}: ${i + 1} is stored, and was refused by ${(error as RunwireError).code}`,
            );
        }
      }
      await world.sleep(world.whole(0, 300));
    }
  });
  return made;
}
