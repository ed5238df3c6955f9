// One small world, and every moment of its write path: what comes, what is looked for, what is about to be stored, what is
// stored and nobody knows, what is answered. At one moment after the other something happens to the server, until there is
// none left.

import { work } from "./agents.js";
import type { Moment } from "./awaits.js";
import { expectBlobs } from "./blobs.js";
import { expectRefusing } from "./chaos.js";
import type { Doubt } from "./disk.js";
import type { Life } from "./lives.js";
import { server } from "./network.js";
import { decide } from "./people.js";
import { produce } from "./producing.js";
import { read, readMany } from "./reading.js";
import { writeInSessions } from "./sessions.js";
import { produceTree } from "./trees.js";
import type { World } from "./world.js";

export const happenings = ["killed", "left", "stopped"] as const;
export type Happening = (typeof happenings)[number];

export interface Strike {
  readonly moment: Moment;
  /** Which of them, from 1. */
  readonly n: number;
  /** To the server; or what becomes of the write that is about to be stored. */
  readonly happening: Happening | Doubt;
  /** Whether it came to that many. */
  isStruck: boolean;
}

/** A run with a request and an answer, one in sessions, a tree whose root ends it, the agent, and readers of all of them. */
export function momentLife(strike: Strike): Life {
  return (world, told) => {
    beset(world, strike);
    world.begin("a run", async () => {
      const drafts = [
        { type: "text.delta", payload: { text: "a ", n: 1 } },
        { type: "approval.requested", payload: { approval_id: "appr_1", n: 2 } },
        { type: "tool.start", payload: { call_id: "c", tool: "look", n: 3 } },
        { type: "text.delta", payload: { text: "b ", n: 4 } },
        { type: "tool.end", payload: { call_id: "c", ok: true, output: "x".repeat(70_000), n: 5 } },
        { type: "run.lifecycle", payload: { state: "done" } },
      ] as const;
      const made = await produce(world, "small", drafts as never);
      expectBlobs(world, made.run_id);
      told.productions.push(made);
      told.decisions.push({
        tenant: made.tenant,
        run_id: made.run_id,
        of: decide(world, made.run_id, ["appr_1"], 2),
      });
      told.readings.push(read(world, "of it", made.run_id), read(world, "of it again", made.run_id));
    });
    world.begin("a run in sessions", async () => {
      const drafts = [
        { type: "text.delta", payload: { text: "a ", n: 1 } },
        { type: "custom", payload: { output: "y".repeat(70_000), n: 2 } },
        { type: "text.delta", payload: { text: "b ", n: 3 } },
        { type: "run.lifecycle", payload: { state: "done" } },
      ] as const;
      const made = await writeInSessions(world, "small-sessions", drafts as never);
      expectBlobs(world, made.run_id);
      told.productions.push(made);
    });
    world.begin("a tree", async () => {
      const { production } = await produceTree(world, "tree", 20, (one) => told.parts.push(one));
      told.productions.push(production);
      told.readings.push(...readMany(world, "of the tree", [production.run_id]));
    });
    world.begin("the agent", async () => {
      const one = await work(world, "small", "tell me about uPlot");
      told.works.push(one);
      told.readings.push(read(world, "of the agent", one.run_id));
    });
  };
}

function beset(world: World, strike: Strike): void {
  const { moment, happening } = strike;
  let left = strike.n;
  const callOff = world.awaits.watch((come) => {
    if (come !== moment) return;
    left -= 1;
    if (left > 0) return;
    callOff();
    strike.isStruck = true;
    // Nobody's: a server that stands still would never ring the timer that lets it go on.
    world.time.as("", () =>
      world.begin(`${JSON.stringify(happening)} ${moment} ${strike.n}`, () =>
        typeof happening === "string" ? happen(world, happening) : doubt(world, happening),
      ),
    );
  });
}

async function happen(world: World, happening: Happening): Promise<void> {
  switch (happening) {
    case "killed":
      world.kill();
      break;
    case "left":
      await world.leave();
      break;
    case "stopped":
      world.time.standStill(server);
      await world.sleep(120_000);
      world.time.goOn(server);
      return;
  }
  await world.sleep(200);
  await world.start();
}

async function doubt(world: World, how: Doubt): Promise<void> {
  world.disk.doubt(how);
  await world.sleep(1000);
  await expectRefusing(world);
  world.kill();
  await world.sleep(200);
  await world.start();
}
