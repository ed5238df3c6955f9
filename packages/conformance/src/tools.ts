// Programs that some tests need and that a machine may lack. What needs one is skipped without it, and says so; where
// `CI=true` it fails, unless whoever prepared the machine has named it in `CI_LACKS` as not to be had there. So a
// skip is never taken for a pass.

import { spawnSync } from "node:child_process";

/** One of these programs, with arguments that succeed where it can do what it is needed for. */
const trials = {
  chromium: [["chromium", "chromium-browser", "google-chrome"], "--version"],
  curl: [["curl"], "--version"],
  go: [[process.env.RUNWIRE_GO ?? "go"], "version"],
  "nats-server": [natsServers(process.env.RUNWIRE_NATS_SERVER), "--version"],
  nginx: [["nginx"], "-v"],
  openssl: [["openssl"], "version"],
  sqlite3: [["sqlite3"], "-version"],
  strace: [["strace"], "-f", "-qq", "-o", "/dev/null", "true"],
  unshare: [["unshare"], "-rm", "sh", "-c", 'mount -t tmpfs none "$0"', "/mnt"],
} as const satisfies { readonly [tool: string]: readonly [readonly string[], ...string[]] };

type ToolName = keyof typeof trials;

export interface Tool {
  readonly program: string;
  /** Why what needs it is skipped; undefined where it is there. */
  readonly whyNot: string | undefined;
}

export function tool(name: ToolName): Tool {
  const [programs, ...args] = trials[name];
  const tried = programs.map((program) => ({ program, ...spawnSync(program, args, { encoding: "utf8" }) }));
  const found = tried.find(({ status }) => status === 0);
  const [first] = tried;
  if (found !== undefined || first === undefined)
    return { program: found?.program ?? name, whyNot: undefined };
  const whyNot = `${name} cannot be used: ${first.error?.message ?? first.stderr.trim()}`;
  const { CI, CI_LACKS = "" } = process.env;
  if (CI === "true" && !CI_LACKS.split(" ").includes(name)) throw new Error(whyNot);
  process.stdout.write(`SKIPPED: ${whyNot}\n`);
  return { program: name, whyNot };
}

function natsServers(given: string | undefined): readonly string[] {
  return given === undefined ? ["nats-server", "/usr/sbin/nats-server"] : [given];
}
