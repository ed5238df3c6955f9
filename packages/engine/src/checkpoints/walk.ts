// What a workspace holds, name by name from open folders, as the file tools do: no link is followed, and there is
// nothing to be swapped between a look and a use. In the same order each time, so that the same files are the same bytes.
// What a command takes away meanwhile is left out, as if this had looked a moment later.

import type { BigIntStats } from "node:fs";
import { type FileHandle, lstat, opendir } from "node:fs/promises";
import { nullIfMissing } from "../missing.js";
import { at, namesOf, openFolder } from "../tools/workspace.js";
import { checkpointLimits as limits } from "./limits.js";

export interface Found {
  /** Relative to the workspace. */
  readonly path: string;
  readonly kind: "file" | "folder" | "link";
  readonly stat: BigIntStats;
  /** The open folder that it is in, while it is looked at. */
  readonly folder: FileHandle;
  readonly name: string;
}

/** Throws where it cannot be told whole: too much, too deep, or with a name that is no text. */
export async function* walk(workspace: FileHandle): AsyncGenerator<Found> {
  const count = { entries: 0 };
  yield* walkFolder(workspace, "", count);
}

async function* walkFolder(
  folder: FileHandle,
  prefix: string,
  count: { entries: number },
): AsyncGenerator<Found> {
  const names = (await namesIn(folder, count).catch(nullIfMissing)) ?? [];
  for (const name of names.sort()) {
    const path = `${prefix}${name}`;
    // What could not be restored is not taken.
    namesOf(path);
    const stat = await lstat(at(folder, name), { bigint: true }).catch(nullIfMissing);
    // Its bytes are others than the name that they were read as, and that one is not there.
    if (stat === null && name.includes("\uFFFD")) throw new Error("the workspace has a name that is no text");
    const kind = stat === null ? null : kindOf(stat);
    // Sockets, pipes and devices are no content.
    if (stat === null || kind === null) continue;
    yield { path, kind, stat, folder, name };
    const inner = kind === "folder" ? await openFolder(at(folder, name)).catch(nullIfMissing) : null;
    if (inner === null) continue;
    try {
      yield* walkFolder(inner, `${path}/`, count);
    } finally {
      await inner.close();
    }
  }
}

async function namesIn(folder: FileHandle, count: { entries: number }): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of await opendir(`/proc/self/fd/${folder.fd}`)) {
    count.entries += 1;
    if (count.entries > limits.entriesMax)
      throw new Error(`the workspace holds more than ${limits.entriesMax} files and folders`);
    names.push(name);
  }
  return names;
}

function kindOf(stat: BigIntStats): Found["kind"] | null {
  if (stat.isFile()) return "file";
  if (stat.isDirectory()) return "folder";
  return stat.isSymbolicLink() ? "link" : null;
}
