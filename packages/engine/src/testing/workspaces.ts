// Workspaces and checkpoints without a server: what they ask of their host is here in a test's hands.

import { lstatSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AgentHost, CheckpointLimits, RunRecord } from "@runwire/server";
import { type Workspaces, workspaces } from "../checkpoints/workspaces.js";

export interface TestWorkspaces {
  readonly dataFolder: string;
  readonly host: AgentHost;
  readonly places: Workspaces;
  /** How long ago trees have ended, by their roots: null for live ones. Others are not there. */
  readonly ended: Map<string, number | null>;
  readonly reported: unknown[];
  pass(ms: number): void;
  /** As after a crash: on the same folder, with nothing remembered. */
  restart(): Workspaces;
  remove(): void;
}

export function testWorkspaces(limits: Partial<CheckpointLimits> = {}): TestWorkspaces {
  const dataFolder = mkdtempSync(join(tmpdir(), "runwire-checkpoints-"));
  const ended = new Map<string, number | null>();
  const reported: unknown[] = [];
  let aheadMs = 0;
  const host = {
    dataFolder,
    durability: "os",
    clock: { now: () => Date.now() + aheadMs, monotonic: () => performance.now() + aheadMs },
    checkpointLimits: {
      perRunMax: 10,
      endedMsMax: 7 * 24 * 60 * 60 * 1000,
      tenantBytesMax: 500 * 1024 * 1024,
      ...limits,
    },
    endedMs: async ({ run_id }: { readonly run_id: string }) => ended.get(run_id),
    report: (...said: unknown[]) => void reported.push(said),
  } as unknown as AgentHost;
  return {
    dataFolder,
    host,
    places: workspaces(host),
    ended,
    reported,
    pass(ms) {
      aheadMs += ms;
    },
    restart: () => workspaces(host),
    remove: () => rmSync(dataFolder, { recursive: true }),
  };
}

export function runNamed(run_id: string, root_id = run_id, tenant = "default"): RunRecord {
  return { tenant, run_id, root_id } as RunRecord;
}

/** Everything that a folder holds: kind, mode and content of each entry, by its path. No link is followed. */
export function treeIn(folder: string, prefix = ""): { readonly [path: string]: readonly unknown[] } {
  const entries = readdirSync(folder).flatMap((name): [string, readonly unknown[]][] => {
    const file = join(folder, name);
    const path = `${prefix}${name}`;
    const stat = lstatSync(file);
    const mode = stat.mode & 0o777;
    if (stat.isSymbolicLink()) return [[path, ["link", readlinkSync(file)]]];
    if (stat.isFile()) return [[path, ["file", mode, readFileSync(file).toString("base64")]]];
    if (stat.isDirectory()) return [[path, ["folder", mode]], ...Object.entries(treeIn(file, `${path}/`))];
    return [];
  });
  return Object.fromEntries(entries);
}
