// A store on trial: opened in a folder of its own, with a clock that moves only when told.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Draft } from "@runwire/protocol";
import type { Clock, IngestUnderTest, Key, NewRun, Open, OpenOptions, StoreUnderTest } from "./under-test.js";

export interface HeldClock extends Clock {
  /** Time passes. */
  pass(ms: number): void;
  /** Time passes, but the process does not run. */
  freeze(ms: number): void;
  /** Somebody sets the wall clock; monotonic time does not notice. */
  jump(ms: number): void;
}

export function heldClock(startMs: number = Date.UTC(2026, 4, 14, 19, 42)): HeldClock {
  let wallMs = startMs;
  let monotonicMs = 1000;
  let frozenMs = 0;
  const pass = (ms: number): void => {
    wallMs += ms;
    monotonicMs += ms;
  };
  return {
    now: () => wallMs,
    monotonic: () => monotonicMs,
    awake: () => monotonicMs - frozenMs,
    pass,
    freeze(ms) {
      pass(ms);
      frozenMs += ms;
    },
    jump(ms) {
      wallMs += ms;
    },
  };
}

export interface Trial {
  readonly clock: HeldClock;
  readonly folder: string;
  readonly store: StoreUnderTest;
  readonly ingest: IngestUnderTest;
  /** Closes without a last tick and opens again, as a restart would. */
  reopen(meanwhile?: () => void): Promise<void>;
}

/** Runs a law on a fresh store and leaves nothing behind. */
export async function onTrial(
  open: Open,
  law: (trial: Trial) => Promise<void>,
  options: OpenOptions = {},
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "runwire-store-"));
  const clock = heldClock();
  // No timer rings: what is due when time has passed is done where a law says so, and never between its steps.
  const held: OpenOptions = { ...options, after: () => () => {} };
  let opened = open(folder, clock, held);
  const close = async () => {
    opened.ingest.close();
    await opened.store.close();
  };
  try {
    await law({
      clock,
      folder,
      get store() {
        return opened.store;
      },
      get ingest() {
        return opened.ingest;
      },
      async reopen(meanwhile = () => {}) {
        await close();
        meanwhile();
        opened = open(folder, clock, held);
      },
    });
  } finally {
    await close();
    rmSync(folder, { recursive: true, force: true });
  }
}

export const tenant = "acme";
const leaseMs = 30_000;

export async function newRun(
  { ingest }: Pick<Trial, "ingest">,
  of: { readonly tenant?: string; readonly lease_ms?: number } = {},
): Promise<Key> {
  const owner = of.tenant ?? tenant;
  const { run_id } = await ingest.create(owner, asked(of.lease_ms));
  return { tenant: owner, run_id };
}

/** What a run is created with, where nothing depends on it. */
export function asked(lease_ms: number = leaseMs): NewRun {
  return {
    messages: [{ role: "user", content: "go" }],
    session_id: null,
    agent: null,
    model: null,
    planning_gate: "off",
    metadata: {},
    lease_ms,
    asked: {},
    external: true,
  };
}

let cases = 0;

/**
 * The same drafts with run ids that no store has seen: generated ids are counted from 1, and a law runs many
 * cases on one store.
 */
export function freshIds(drafts: readonly Draft[]): readonly Draft[] {
  cases += 1;
  const renamed = (run_id: string) => `${run_id}.${process.pid}.${cases}`;
  return drafts.map((draft): Draft => {
    const child_id = draft.child_id == null ? {} : { child_id: renamed(draft.child_id) };
    if (draft.type !== "child.spawn") return { ...draft, ...child_id };
    const spawned = renamed((draft.payload as { child_id: string }).child_id);
    return { ...draft, ...child_id, payload: { ...draft.payload, child_id: spawned } } as Draft;
  });
}

/** A spawn of a child that no store has seen. */
export function freshSpawn(): { readonly spawn: Draft; readonly child_id: string } {
  const [spawn] = freshIds([{ type: "child.spawn", payload: { child_id: "run_1" } }]) as [Draft];
  return { spawn, child_id: (spawn.payload as { child_id: string }).child_id };
}

export const isSoak = process.env.RUNWIRE_SOAK === "1";

export const lawMsMax = isSoak ? 1_800_000 : 120_000;

/** How long a law runs; a soak has twenty times as many cases. Shrinking a failure ends in time to be printed. */
export function caseCount(few: number) {
  return {
    numRuns: isSoak ? few * 10 : Math.ceil(few / 2),
    interruptAfterTimeLimit: isSoak ? 900_000 : 30_000,
  };
}

/** The error code that a promise is refused with; undefined where it is not refused. */
export async function codeOf(promise: Promise<unknown>): Promise<string | undefined> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (typeof code !== "string") throw error;
    return code;
  }
}
