// Where converted lines go: to stdout, or into a file that has its name only once it is whole.

import { once } from "node:events";
import { existsSync, statSync } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";

export interface Output {
  /** Resolves when there is room for more. */
  write(text: string): Promise<void>;
  /** Gives a file its name. */
  finish(): Promise<void>;
  /** Leaves nothing behind. */
  discard(): Promise<void>;
}

export async function openOutput(path: string | undefined): Promise<Output> {
  if (path === undefined || path === "-") return stdoutOutput();
  // A device or a pipe keeps its name; there is nothing to put in its place.
  if (existsSync(path) && !statSync(path).isFile()) return fileOutput(await open(path, "w"), async () => {});
  const part = `${path}.${process.pid}.part`;
  const file = await open(part, "wx");
  const output = fileOutput(file, () => rename(part, path));
  return {
    ...output,
    async discard() {
      await output.discard();
      await rm(part, { force: true });
    },
  };
}

function stdoutOutput(): Output {
  const { stdout } = process;
  // Whoever read it, `head` or a pager, has seen enough.
  stdout.on("error", () => process.exit(0));
  return {
    async write(text) {
      if (text !== "" && !stdout.write(text)) await once(stdout, "drain");
    },
    finish: async () => {},
    discard: async () => {},
  };
}

function fileOutput(file: FileHandle, name: () => Promise<void>): Output {
  return {
    async write(text) {
      if (text !== "") await file.writeFile(text);
    },
    async finish() {
      await file.sync().catch(() => {
        // Devices and pipes know no sync.
      });
      await file.close();
      await name();
    },
    discard: () => file.close(),
  };
}
