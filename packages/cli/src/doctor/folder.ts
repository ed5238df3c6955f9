// The data folder: there, writable, and nobody else's.

import { accessSync, constants, existsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { messageOf } from "@runwire/protocol";
import { type Check, doubtful, type Finding, right, wrong } from "./finding.js";

const otherPeople = 0o077;

export const folder: Check = ({ settings: { dataFolder } }) => {
  const path = resolve(dataFolder);
  if (!existsSync(path)) {
    const problem = writeProblem(nearestFolder(path));
    if (problem === undefined) return [right("data folder", `${path} is not there yet; a server makes it`)];
    return [wrong("data folder", `${path} cannot be made (${problem})`, "choose another with --data")];
  }
  if (!statSync(path).isDirectory()) {
    return [wrong("data folder", `${path} is not a folder`, "choose another with --data")];
  }
  const problem = writeProblem(path);
  if (problem !== undefined) {
    const todo = `make it writable for the user that runs the server, as with \`chown\`, or choose another`;
    return [wrong("data folder", `${path} cannot be written (${problem})`, todo)];
  }
  return [judgeFolderMode(path), ...judgeKeyFile(join(path, "keys.json"))];
};

/** The folder itself, or the next one above that exists. */
export function nearestFolder(path: string): string {
  const whole = resolve(path);
  return existsSync(whole) || dirname(whole) === whole ? whole : nearestFolder(dirname(whole));
}

function judgeFolderMode(path: string): Finding {
  const mode = modeOf(path);
  if ((mode & otherPeople) === 0) return right("data folder", path);
  return doubtful(
    "data folder",
    `${path} is open to other users of this machine (mode ${mode.toString(8)})`,
    `chmod 700 ${path}`,
  );
}

function judgeKeyFile(path: string): readonly Finding[] {
  if (!existsSync(path)) return [];
  const mode = modeOf(path);
  if ((mode & otherPeople) === 0) return [];
  const says = `${path} is open to other users of this machine (mode ${mode.toString(8)})`;
  return [wrong("key file", says, `chmod 600 ${path}`)];
}

function modeOf(path: string): number {
  return statSync(path).mode & 0o777;
}

function writeProblem(path: string): string | undefined {
  try {
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}
