// Hooks: the program of each is there, and may be run.

import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { join } from "node:path";
import type { HookCommand } from "@runwire/engine";
import { type Check, doubtful, type Finding, right } from "./finding.js";

export const hooks: Check = ({ settings }) => Promise.all(settings.hooks.map(look));

async function look({ name, command: [program], required }: HookCommand): Promise<Finding> {
  if (await isThere(program)) return right("hooks", `${name} can be run`);
  const harm = required
    ? "until then every call that it looks at is refused"
    : "until then calls go on without it";
  return doubtful("hooks", `${name}: there is no program ${program} to run`, `mend its \`command\`; ${harm}`);
}

/** Where the agent would look for it. */
const folders = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

async function isThere(program: string): Promise<boolean> {
  const places = program.startsWith("/") ? [program] : folders.map((folder) => join(folder, program));
  const found = await Promise.all(
    places.map((place) =>
      access(place, constants.X_OK).then(
        () => true,
        () => false,
      ),
    ),
  );
  return found.includes(true);
}
