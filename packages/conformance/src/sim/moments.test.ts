import * as engine from "@runwire/engine";
import * as server from "@runwire/server";
import { describe, it } from "vitest";
import { isSoak } from "../gateway/chance.js";
import { calm, living } from "./living.js";
import { happenings, momentLife } from "./moments.js";

const { live, learnCalmly } = living({ ...server, ...engine } as never);

describe("the write path", () => {
  const moments = (["asked", "before", "after"] as const).flatMap((moment) =>
    happenings.map((happening) => ({ moment, happening })),
  );

  // Every write, from the first or from the one that is given. There are about 150, of which each is a world.
  it.for(moments)(
    "holds what it promises where its server is $happening at any write, $moment",
    { timeout: 10 * 3_600_000 },
    async ({ moment, happening }, { skip }) => {
      skip(!isSoak, "some 150 worlds each: in a soak alone");
      await learnCalmly();
      for (let n = Number(process.env.RUNWIRE_WRITE ?? 1); ; n++) {
        const strike = { moment, n, happening, isStruck: false };
        await live(1, momentLife(strike), { ...calm, slowShare: 0.3 }).catch((cause: unknown) => {
          throw new Error(`RUNWIRE_WRITE=${n}: ${(cause as Error).message}`, { cause });
        });
        if (n % 20 === 0 || !strike.isStruck)
          process.stdout.write(`the write path: ${happening}, ${moment}: ${n} writes\n`);
        if (!strike.isStruck) return;
      }
    },
  );
});
