// What has changed in a workspace while calls were at work in it. Calls that work at the same time share what was listed
// last: whoever looks first tells a change, and nobody tells it again.

import { inTurn } from "../tools/turns.js";
import { type ListedFile, type Listing, listFiles } from "./listing.js";

export interface FileChange {
  readonly path: string;
  readonly change: "created" | "modified" | "deleted";
  readonly before: ListedFile | null;
  readonly after: ListedFile | null;
}

export interface FileWatch {
  /** What has changed since it was looked at last, by path. Throws where the workspace cannot be told. */
  changes(): Promise<readonly FileChange[]>;
  close(): void;
}

interface Watched {
  calls: number;
  last: Listing | Error;
}

const watched = new Map<string, Watched>();

/** Never throws: where it cannot look now, it says so when it is asked. */
export async function watchFiles(workspace: string): Promise<FileWatch> {
  return watching(workspace).catch((error: unknown) => ({
    changes: () => Promise.reject(error),
    close() {},
  }));
}

/** In turn with the file tools, which write beside a file before they put it in its place. */
async function watching(workspace: string): Promise<FileWatch> {
  const known = await inTurn(workspace, async () => {
    const there = watched.get(workspace) ?? { calls: 0, last: await listed(workspace) };
    watched.set(workspace, there);
    there.calls += 1;
    return there;
  });
  return {
    changes: () =>
      inTurn(workspace, async () => {
        const { last } = known;
        if (last instanceof Error) throw last;
        const now = await listFiles(workspace, last);
        known.last = now;
        return changesBetween(last, now);
      }),
    close() {
      known.calls -= 1;
      if (known.calls === 0) watched.delete(workspace);
    },
  };
}

async function listed(workspace: string): Promise<Listing | Error> {
  return listFiles(workspace).catch((error: unknown) =>
    error instanceof Error ? error : new Error(String(error)),
  );
}

function changesBetween(before: Listing, after: Listing): readonly FileChange[] {
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  return paths.flatMap((path): readonly FileChange[] => {
    const [old = null, now = null] = [before.get(path), after.get(path)];
    if (old?.mark === now?.mark) return [];
    // Touched, and still the same.
    if (old?.content != null && now?.content != null && old.content.equals(now.content)) return [];
    return [
      {
        path,
        change: old === null ? "created" : now === null ? "deleted" : "modified",
        before: old,
        after: now,
      },
    ];
  });
}
