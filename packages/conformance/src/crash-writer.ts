// A process that is meant to die: it appends batches to trees of runs, many at a time, and prints a line for
// each batch that was answered. Whoever kills it holds the store to those lines.
//
//   node crash-writer.js <server module> <folder> <producers> <batches each> <hot events> [<seed>]

import type { Draft } from "@runwire/protocol";
import { randomFrom } from "./gateway/chance.js";
import { openSqlite, type ServerModule } from "./suites/store/server-module.js";
import { treeOf } from "./suites/store/tree.js";
import { asked } from "./suites/store/trial.js";
import type { Key } from "./suites/store/under-test.js";

/** One answered batch. */
export interface Ack {
  readonly run_id: string;
  readonly first_pos: number;
  readonly last_pos: number;
  readonly producer: number;
  readonly batch: string;
}

const tenant = "acme";
const trees = 3;
const levels = 2;
const newRun = { ...asked(24 * 60 * 60 * 1000), messages: [] };

const [serverPath = "", folder = "", producers = "1", batches = "1", hotEvents = "1000", seed = "0"] =
  process.argv.slice(2);
const server = (await import(serverPath)) as ServerModule;
const open = openSqlite(server, { durability: "fsync", hotEventsMax: Number(hotEvents) });
const { store, ingest } = open(folder, server.systemClock);

try {
  const runs = await findRuns();
  await Promise.all(Array.from({ length: Number(producers) }, (_, producer) => produce(runs, producer)));
} catch (error) {
  // Its threads leave before it does: one that is torn down inside a native call would abort the process.
  console.error(error);
  process.exitCode = 1;
}
ingest.close();
await store.close();

/** The trees of the process that died here before, or new ones: a root, its child, its grandchild. */
async function findRuns(): Promise<readonly Key[]> {
  const { heads } = await store.listRuns(tenant, { limit: trees });
  const roots = heads.map(({ run }) => run.run_id);
  while (roots.length < trees) {
    const { run_id } = await ingest.create(tenant, newRun);
    roots.push(run_id);
    for (let level = 0, parent = run_id; level < levels; level++) {
      const child_id = `${run_id}.${level}`;
      await ingest.append({ tenant, run_id: parent }, [{ type: "child.spawn", payload: { child_id } }]);
      parent = child_id;
    }
  }
  const found = await Promise.all(roots.map((run_id) => treeOf(store, { tenant, run_id })));
  return found.flat().map(({ run_id }) => ({ tenant, run_id }));
}

async function produce(runs: readonly Key[], producer: number): Promise<void> {
  // Its own chances, so that they do not depend on who is answered first.
  const random = randomFrom(Number(seed) + producer);
  for (let n = 0; n < Number(batches); n++) {
    const key = runs[Math.floor(random() * runs.length)] as Key;
    const batch = `${process.pid}.${n}`;
    const drafts = Array.from({ length: 1 + Math.floor(random() * 50) }, (_, i): Draft => {
      const payload = { text: `${i} `, producer, batch, i };
      return random() < 0.5 ? { type: "text.delta", payload } : { type: "custom", payload };
    });
    const { first_pos, last_pos } = await ingest.append(key, drafts);
    const ack = { run_id: key.run_id, first_pos, last_pos, producer, batch };
    process.stdout.write(`${JSON.stringify(ack)}\n`);
  }
}
