// The folders in which the agent's runs work, one a tree, with the checkpoints that were made of them:
//
//   workspaces/<tenant>/<root>    as long as the run is kept
//   checkpoints/<tenant>/<root>   not as long; see shelf.ts
//
// A folder whose tree the store does not know, or no longer, is what a crash has left: it goes.

import { chmod, mkdir, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { idSource, messageOf, RunwireError } from "@runwire/protocol";
import type { AgentHost, Restored, RunKey, RunRecord } from "@runwire/server";
import { nullIfMissing } from "../missing.js";
import { checkpointLimits as limits } from "./limits.js";
import { isCheckpointId, namesIn, shelf, type TreeMember } from "./shelf.js";
import { snapshots } from "./snapshot.js";
import { unpack } from "./unpack.js";

export interface Workspaces {
  /** Makes the folder of a run's tree, where there is none yet. */
  make(run: RunRecord): Promise<string>;
  /** Keeps the workspace as it is now, on disk before this resolves; null where that cannot be, which is reported. */
  checkpoint(run: TreeMember): Promise<string | null>;
  /** Lets go checkpoints of a run after the last that its log names: a crash came between. */
  settle(run: TreeMember, named: string | null): Promise<void>;
  kept(run: RunRecord): Promise<ReadonlyMap<string, number>>;
  restore(run: RunRecord, checkpoint_id: string): Promise<Restored | undefined>;
  /** What cannot be removed keeps nothing else from going, and is told when that has gone. */
  forget(roots: readonly RunKey[]): Promise<void>;
  sweep(): Promise<void>;
}

export function workspaces(host: AgentHost): Workspaces {
  const { clock, dataFolder, durability, checkpointLimits, report } = host;
  const top = join(dataFolder, "workspaces");
  const kept = join(dataFolder, "checkpoints");
  const isSynced = durability === "fsync";
  const checkpoints = shelf(kept, host);
  const snapshot = snapshots(checkpoints, isSynced);
  const ids = idSource(Math.random);
  /** Workspaces whose runs are just being created, or may be there after the next start. */
  const held = new Set<string>();
  let round: AsyncGenerator<void> | undefined;
  let roundEndedMs = Number.NEGATIVE_INFINITY;

  const folderOf = ({ tenant, root_id }: Pick<RunRecord, "tenant" | "root_id">): string =>
    join(top, tenant, root_id);

  async function forget(roots: readonly RunKey[]): Promise<void> {
    let failure: unknown;
    const failed = (error: unknown): void => {
      failure ??= error;
    };
    for (const { tenant, run_id: root_id } of roots) {
      await checkpoints.dropTree({ tenant, root_id }).catch(failed);
      await remove(folderOf({ tenant, root_id })).catch(failed);
    }
    if (failure !== undefined) throw failure;
  }

  /** Looks at every tree of which there is a folder, one at a time. */
  async function* trees(): AsyncGenerator<void> {
    for (const folder of [kept, top]) {
      for (const tenant of await namesIn(folder)) {
        if (tenant.startsWith(".")) continue;
        for (const root_id of await namesIn(join(folder, tenant))) {
          // One that cannot be removed does not keep the others; the next round tries again.
          await look({ tenant, run_id: root_id }).catch((error: unknown) =>
            report("warn", "workspace not swept", { run_id: root_id, error: messageOf(error) }),
          );
          yield;
        }
      }
    }
  }

  async function look(root: RunKey): Promise<void> {
    // First whether it is held: a run that is created is known to the store before it is let go.
    if (held.has(folderOf({ tenant: root.tenant, root_id: root.run_id }))) return;
    const endedMs = await host.endedMs(root);
    if (endedMs === undefined) await forget([root]);
    else if (endedMs !== null && endedMs >= checkpointLimits.endedMsMax)
      await checkpoints.dropTree({ tenant: root.tenant, root_id: root.run_id });
  }

  return {
    async make(run) {
      const folder = folderOf(run);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      return folder;
    },

    async checkpoint(run) {
      if (checkpointLimits.perRunMax === 0) return null;
      try {
        return await snapshot(run, folderOf(run));
      } catch (error) {
        report("warn", "no checkpoint", { run_id: run.run_id, error: messageOf(error) });
        return null;
      }
    },

    settle: (run, named) =>
      checkpoints
        .dropAfter(run, named)
        .catch((error: unknown) =>
          report("warn", "checkpoints not settled", { run_id: run.run_id, error: messageOf(error) }),
        ),
    kept: (run) =>
      checkpoints.kept(run).catch((cause: unknown) => {
        throw refusal(cause, `the checkpoints of ${run.run_id} cannot be listed`);
      }),

    async restore(run, checkpoint_id) {
      if (!isCheckpointId(checkpoint_id)) return undefined;
      // Open, it stays whole even where its name goes.
      const why = `${checkpoint_id} was not restored`;
      const file = await open(checkpoints.fileOf(run, checkpoint_id))
        .catch(nullIfMissing)
        .catch((cause: unknown) => {
          throw refusal(cause, why);
        });
      if (file === null) return undefined;
      const { tenant } = run;
      const run_id = ids.next("run", clock.now());
      const folder = folderOf({ tenant, root_id: run_id });
      held.add(folder);
      // What cannot be removed now is no tree's, and the next round tries again.
      const leave = async (): Promise<void> => {
        await forget([{ tenant, run_id }]).catch(() => {});
        held.delete(folder);
      };
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await pipeline(file.createReadStream(), createGunzip(), (bytes) =>
          unpack(bytes as AsyncIterable<Buffer>, folder, isSynced),
        );
      } catch (cause) {
        await leave();
        throw refusal(cause, why);
      } finally {
        // Where nothing was read of it, nobody else has.
        await file.close();
      }
      return {
        run_id,
        async settle(outcome) {
          // Where whoever asked does not know whether the run is there, the next round asks the store.
          if (outcome === "refused") await leave();
          else held.delete(folder);
        },
      };
    },

    forget,

    async sweep() {
      if (round === undefined) {
        if (clock.monotonic() - roundEndedMs < limits.roundMs) return;
        round = trees();
      }
      for (let looked = 0; looked < limits.treesPerSweep; looked++) {
        const { done } = await round.next();
        if (done !== true) continue;
        round = undefined;
        roundEndedMs = clock.monotonic();
        return;
      }
    },
  };
}

async function remove(folder: string): Promise<void> {
  // Something that is just being written may come in between.
  const all = { recursive: true, force: true, maxRetries: 5 } as const;
  await rm(folder, all).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "EACCES") throw error;
    await unlock(folder);
    await rm(folder, all);
  });
}

/** Package managers make folders that nobody may write to: these could not be emptied. */
async function unlock(folder: string): Promise<void> {
  await chmod(folder, 0o700);
  for (const found of await readdir(folder, { withFileTypes: true }))
    if (found.isDirectory()) await unlock(join(folder, found.name));
}

function refusal(cause: unknown, why: string): RunwireError {
  const { errno, code } = cause as NodeJS.ErrnoException;
  const told = { cause };
  if (code === "ENOSPC" || code === "EDQUOT") return new RunwireError("KAI-SERVER-STORE-0002", why, told);
  // The system's own errors are negative; whatever else it is, the file does not hold what was written.
  if (errno !== undefined && errno < 0 && code?.startsWith("Z_") !== true)
    return new RunwireError("KAI-SERVER-STORE-0001", `${why}: ${code}`, told);
  return new RunwireError("KAI-SERVER-STORE-0003", why, told);
}
