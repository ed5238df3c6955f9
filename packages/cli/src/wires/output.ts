// Where converted lines go: to stdout, or into a file that has its name only once it is whole.

import { once } from "node:events";
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";

export interface Output {
  /** Resolves when there is room for more. */
  write(text: string): Promise<void>;
  /** Gives a file its name. */
  finish(): void;
  /** Leaves nothing behind. */
  discard(): void;
}

export function openOutput(path: string | undefined): Output {
  if (path === undefined || path === "-") return stdoutOutput();
  if (path === "") throw new Error("--output: it is empty; name a file");
  // A device or a pipe keeps its name; there is nothing to put in its place.
  if (existsSync(path) && !statSync(path).isFile()) {
    const file = opened(path, path, "w");
    return fileOutput(file, () => closeSync(file));
  }
  const part = `${path}.${process.pid}.part`;
  const file = opened(path, part, "wx");
  const finish = (): void => {
    fsyncSync(file);
    closeSync(file);
    renameSync(part, path);
  };
  return { ...fileOutput(file, finish), discard: () => rmSync(part, { force: true }) };
}

/** Where it cannot be, the name is the one that was given. */
function opened(path: string, file: string, flags: "w" | "wx"): number {
  try {
    return openSync(file, flags);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = {
      ENOENT: "there is no such folder",
      EISDIR: "it is a folder",
      EACCES: "it may not be written",
    }[String(code)];
    throw why === undefined ? error : new Error(`${path}: ${why}`, { cause: error });
  }
}

function stdoutOutput(): Output {
  const { stdout } = process;
  return {
    async write(text) {
      if (text !== "" && !stdout.write(text)) await once(stdout, "drain");
    },
    finish() {},
    discard() {},
  };
}

function fileOutput(file: number, finish: () => void): Output {
  return {
    // At once: there is nothing else to do meanwhile.
    async write(text) {
      if (text !== "") writeFileSync(file, text);
    },
    finish,
    discard() {},
  };
}
