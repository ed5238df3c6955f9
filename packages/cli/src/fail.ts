import { messageOf } from "@runwire/protocol";
import { oneLine } from "./watch/harmless.js";

export function fail(error: unknown): void {
  // Names of files and what servers say are in it.
  process.stderr.write(`runwire: ${oneLine(messageOf(error))}\n`);
  process.exit(1);
}
