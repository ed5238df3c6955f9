// Where checkpoints are kept:
//
//   checkpoints/<tenant>/<root>/<checkpoint>-<run>   a packed workspace, gzip
//   checkpoints/.new/<n>                             while it is written; emptied at every start
//
// The name says it all: which run, which tree, and, because ids ascend, which is older. A file gets its name after its
// bytes are on disk, so what has a name is whole, and what has none is gone after the next start. Two checkpoints of
// one content are two names of one file: the file system counts them, and the content goes with the last of them. So
// there is no list that could disagree with the files.

import { mkdirSync, rmSync } from "node:fs";
import { link, lstat, mkdir, open, readdir, rename, rmdir, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { idSource } from "@runwire/protocol";
import type { AgentHost, RunRecord } from "@runwire/server";
import { nullIfMissing } from "../missing.js";
import { checkpointLimits as limits } from "./limits.js";

export type TreeMember = Pick<RunRecord, "tenant" | "root_id" | "run_id">;
export type Tree = Pick<RunRecord, "tenant" | "root_id">;

export interface Shelf {
  /** A file to write to; `add` gives it its name, or whoever asked for it removes it. */
  newFile(): string;
  /** Names a file that is on disk, or gives another name to what is named already. Makes room for it first. */
  add(run: TreeMember, file: string): Promise<Added>;
  /** Those of a run with their sizes, oldest first. */
  kept(run: TreeMember): Promise<ReadonlyMap<string, number>>;
  fileOf(run: TreeMember, checkpoint_id: string): string;
  /** Removes those of a run that are younger than this one: nobody was told of them. */
  dropAfter(run: TreeMember, checkpoint_id: string | null): Promise<void>;
  dropTree(tree: Tree): Promise<void>;
}

export interface Added {
  readonly checkpoint_id: string;
  readonly file: string;
}

const idLength = "ckpt_".length + 26;
const idPattern = /^ckpt_[0-9A-HJKMNP-TV-Z]{26}$/;

export function isCheckpointId(text: string): boolean {
  return idPattern.test(text);
}

export function shelf(path: string, { clock, durability, checkpointLimits }: AgentHost): Shelf {
  const { perRunMax, tenantBytesMax } = checkpointLimits;
  const ids = idSource(Math.random);
  const unnamed = join(path, ".new");
  rmSync(unnamed, { recursive: true, force: true });
  mkdirSync(unnamed, { recursive: true, mode: 0o700 });
  let made = 0;
  const turns = new Map<string, Promise<unknown>>();
  /** What tenants use, once it was counted. */
  const used = new Map<string, number>();

  const folderOf = ({ tenant, root_id }: Tree): string => join(path, tenant, root_id);
  const fileOf = (run: TreeMember, checkpoint_id: string): string =>
    join(folderOf(run), `${checkpoint_id}-${run.run_id}`);

  /** One thing at a time for each tenant, with what it uses. */
  async function inTurn<T>(tenant: string, job: () => Promise<T>): Promise<T> {
    const done = (turns.get(tenant) ?? Promise.resolve()).then(job);
    const over = done
      .catch(() => {})
      .then(() => {
        if (turns.get(tenant) === over) turns.delete(tenant);
      });
    turns.set(tenant, over);
    return done;
  }

  async function usedBy(tenant: string): Promise<number> {
    let bytes = used.get(tenant);
    if (bytes !== undefined) return bytes;
    bytes = 0;
    for await (const file of filesOf(tenant)) {
      const stat = await lstat(file);
      // Each of its names has its share.
      bytes += stat.size / stat.nlink;
    }
    used.set(tenant, bytes);
    return bytes;
  }

  async function* filesOf(tenant: string): AsyncGenerator<string> {
    for (const root_id of await namesIn(join(path, tenant)))
      for (const name of await namesIn(folderOf({ tenant, root_id })))
        yield join(folderOf({ tenant, root_id }), name);
  }

  async function remove(tenant: string, file: string): Promise<void> {
    const bytes = await usedBy(tenant);
    const { size, nlink } = await lstat(file);
    await unlink(file);
    if (nlink === 1) used.set(tenant, Math.max(0, bytes - size));
  }

  /** The oldest go first, whosever they are. */
  async function makeRoom(tenant: string, bytes: number): Promise<void> {
    if (bytes > tenantBytesMax)
      throw new Error(`a checkpoint of ${bytes} bytes is more than a tenant may keep`);
    if ((await usedBy(tenant)) + bytes <= tenantBytesMax) return;
    const files: string[] = [];
    for await (const file of filesOf(tenant)) files.push(file);
    files.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
    for (const file of files) {
      await remove(tenant, file);
      if ((await usedBy(tenant)) + bytes <= tenantBytesMax * limits.quotaLeft) return;
    }
  }

  async function namesOf(run: TreeMember): Promise<readonly string[]> {
    const names = await namesIn(folderOf(run));
    return names.filter((name) => name.slice(idLength) === `-${run.run_id}`).sort();
  }

  /** A name is a change of its folder, and a new folder one of the folder above. */
  async function flushNames(folder: string): Promise<void> {
    if (durability === "os") return;
    for (const above of [folder, dirname(folder), path, dirname(path)]) {
      const handle = await open(above);
      try {
        await handle.sync();
      } finally {
        await handle.close();
      }
    }
  }

  return {
    newFile() {
      made += 1;
      return join(unnamed, String(made));
    },

    add: (run, from) =>
      inTurn(run.tenant, async () => {
        const { tenant } = run;
        const isNew = dirname(from) === unnamed;
        const { size } = await lstat(from);
        if (isNew) await makeRoom(tenant, size);
        const before = await namesOf(run);
        // Also where the clock was ahead before the last start.
        ids.raise(before.at(-1)?.slice(0, idLength) ?? "");
        const checkpoint_id = ids.next("ckpt", clock.now());
        const file = fileOf(run, checkpoint_id);
        await mkdir(dirname(file), { recursive: true, mode: 0o700 });
        if (isNew) await rename(from, file);
        else await link(from, file);
        used.set(tenant, (await usedBy(tenant)) + (isNew ? size : 0));
        await flushNames(dirname(file));
        for (const name of before.slice(0, Math.max(0, before.length + 1 - perRunMax)))
          await remove(tenant, join(dirname(file), name));
        return { checkpoint_id, file };
      }),

    async kept(run) {
      const sizes = new Map<string, number>();
      for (const name of await namesOf(run)) {
        const stat = await lstat(join(folderOf(run), name)).catch(nullIfMissing);
        if (stat !== null) sizes.set(name.slice(0, idLength), stat.size);
      }
      return sizes;
    },

    fileOf,

    dropAfter: (run, checkpoint_id) =>
      inTurn(run.tenant, async () => {
        for (const name of await namesOf(run))
          if (name.slice(0, idLength) > (checkpoint_id ?? ""))
            await remove(run.tenant, join(folderOf(run), name));
      }),

    dropTree: (tree) =>
      inTurn(tree.tenant, async () => {
        const folder = folderOf(tree);
        for (const name of await namesIn(folder)) await remove(tree.tenant, join(folder, name));
        await rmdir(folder).catch(nullIfMissing);
      }),
  };
}

function nameOf(file: string): string {
  return file.slice(dirname(file).length + 1);
}

export async function namesIn(folder: string): Promise<readonly string[]> {
  return (await readdir(folder).catch(nullIfMissing)) ?? [];
}
