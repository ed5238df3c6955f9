// The database: opens, has our format, is whole, and is not ahead of the clock.

import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "@runwire/protocol";
import { type DatabaseFacts, inspectDatabase, isLocked } from "@runwire/server/operate";
import { type Check, doubtful, type Finding, inWords, right, wrong } from "./finding.js";

const walBytesDoubtful = 256 * 1024 ** 2;
/** Looking through more than this holds up a running server's checkpoints for too long. */
const lookBytesMax = 1024 ** 3;
const clockBehindMsMax = 5000;

export const database: Check = ({ settings, nowMs }) => {
  const path = join(settings.dataFolder, "runwire.db");
  if (!existsSync(path)) return [];
  let facts: DatabaseFacts | undefined;
  try {
    facts = inspectDatabase(path, statSync(path).size <= lookBytesMax || !isLocked(path));
  } catch (error) {
    return [
      wrong(
        "database",
        `${path} cannot be read (${messageOf(error)})`,
        "restore the data folder from a copy",
      ),
    ];
  }
  return facts === undefined ? [] : judgeDatabase(path, facts, nowMs);
};

export function judgeDatabase(path: string, facts: DatabaseFacts, nowMs: number): readonly Finding[] {
  const { bytes, walBytes, format, formatWanted, formatBefore, newestMs, damage } = facts;
  if (format !== formatWanted && format !== formatBefore) {
    const says = `${path} has format ${format}, and this version reads ${formatWanted}`;
    return [wrong("database", says, "use the version that wrote it, or another data folder")];
  }
  const findings: Finding[] = [];
  const size = `${path}, ${inWords(bytes)}`;
  if (damage === undefined) {
    const todo = "stop the server and run this again";
    findings.push(doubtful("database", `${size}, is too large to look through while a server runs`, todo));
  } else if (damage.length > 0) {
    const todo = "stop the server, keep a copy, and restore the data folder from a good one";
    findings.push(wrong("database", `${path} is damaged: ${damage[0]}`, todo));
  } else {
    findings.push(right("database", `${size}, is whole`));
  }
  if (format === formatBefore) {
    const todo = "back it up before the server's next start, which makes the new one of it";
    findings.push(doubtful("database", `it has format ${format}, the one before ${formatWanted}`, todo));
  }
  if (walBytes > walBytesDoubtful) {
    const todo = "restart the server; if it grows again, look for a program that keeps the database open";
    findings.push(doubtful("write-ahead log", `it has grown to ${inWords(walBytes)}`, todo));
  }
  if (newestMs !== undefined && newestMs > nowMs + clockBehindMsMax) {
    const behindS = Math.round((newestMs - nowMs) / 1000);
    const says = `the newest event is ${behindS} s ahead of this machine's clock`;
    findings.push(doubtful("clock", says, "set the clock; leases, retention and expiry follow it"));
  }
  return findings;
}
