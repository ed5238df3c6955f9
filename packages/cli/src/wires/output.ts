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
  // A device or a pipe keeps its name; there is nothing to put in its place.
  if (existsSync(path) && !statSync(path).isFile()) {
    const file = openSync(path, "w");
    return fileOutput(file, () => closeSync(file));
  }
  const part = `${path}.${process.pid}.part`;
  const file = openSync(part, "wx");
  const finish = (): void => {
    fsyncSync(file);
    closeSync(file);
    renameSync(part, path);
  };
  return { ...fileOutput(file, finish), discard: () => rmSync(part, { force: true }) };
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
