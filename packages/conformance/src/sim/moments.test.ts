import * as engine from "@runwire/engine";
import * as server from "@runwire/server";
import { describe, expect, it } from "vitest";
import { chance, isSoak } from "../gateway/chance.js";
import { type Moment, moments } from "./awaits.js";
import { doubts } from "./disk.js";
import { calm, living } from "./living.js";
import { type Happening, happenings, momentLife, type Strike } from "./moments.js";

const { live, learnCalmly } = living({ ...server, ...engine } as never);

/** A world in which that happens at that moment; whether it came to so many of them. */
async function lived(of: Omit<Strike, "isStruck">): Promise<boolean> {
  await learnCalmly();
  const strike = { ...of, isStruck: false };
  await live(1, momentLife(strike), { ...calm, slowShare: 0.3 }).catch((cause: unknown) => {
    throw new Error(`RUNWIRE_WRITE=${of.n}: ${(cause as Error).message}`, { cause });
  });
  return strike.isStruck;
}

/** All would be hours: a few hundred of each of thirty kinds, of which each is a world. */
const stride = 4;

/** The moments of a kind up to its last: every fourth from where the dice say, or every one from the one that is given. */
async function livedAll(of: Omit<Strike, "isStruck" | "n">, name: string): Promise<void> {
  const given = process.env.RUNWIRE_WRITE;
  const first = given === undefined ? chance(`the write path: ${name}`).whole(1, stride) : Number(given);
  for (let n = first; ; n += given === undefined ? stride : 1) {
    if (await lived({ ...of, n })) continue;
    process.stdout.write(`the write path: ${name}: ${n}\n`);
    return;
  }
}

const soakOnly = "some hundred worlds each: in a soak alone";
/** What ordinary worlds meet often. */
const ofDisk: ReadonlySet<Moment> = new Set(["asked", "before", "after"]);
const timeout = 10 * 3_600_000;

describe("the write path", () => {
  const kinds = moments.flatMap((moment) => happenings.map((happening) => ({ moment, happening })));

  it.for(kinds)(
    "holds what it promises where its server is $happening at any moment: $moment",
    { timeout },
    async ({ moment, happening }, { skip }) => {
      skip(!isSoak, soakOnly);
      await livedAll({ moment, happening }, `${happening}, ${moment}`);
    },
  );

  it.for(doubts)(
    "holds what it promises where nobody knows of any write: seen $seen, kept $kept",
    { timeout },
    async (happening, { skip }) => {
      skip(!isSoak, soakOnly);
      await livedAll({ moment: "before", happening }, `in doubt, ${JSON.stringify(happening)}`);
    },
  );

  it("holds what it promises where something happens at some moment", async () => {
    const { whole, pick } = chance("the write path");
    for (const [moment, happening] of [
      ...moments.filter((one) => !ofDisk.has(one)).map((one): [Moment, Happening] => [one, pick(happenings)]),
      ["before", pick(doubts)] as const,
    ]) {
      const n = whole(1, moment.startsWith("put") ? 2 : 10);
      expect([moment, happening, n, await lived({ moment, happening, n })]).toEqual([
        moment,
        happening,
        n,
        true,
      ]);
    }
  });
});
