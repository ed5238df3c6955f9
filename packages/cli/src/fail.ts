import { oneLine } from "./watch/harmless.js";

export function fail(error: unknown): void {
  // Names of files and what servers say are in it.
  process.stderr.write(`runwire: ${oneLine(error instanceof Error ? error.message : String(error))}\n`);
  process.exit(1);
}
