import { mkdirSync } from "node:fs";
import { dirname } from "node:path";

/** Makes a folder with those above it; its own are nobody else's on this machine. Throws what the system says. */
export function makeFolder(path: string): void {
  // Not Node's own recursion: where a file system refuses with the wrong error, as /proc does, it never ends.
  try {
    makeOne(path);
  } catch (error) {
    const above = dirname(path);
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || above === path) throw error;
    makeFolder(above);
    makeOne(path);
  }
}

function makeOne(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}
