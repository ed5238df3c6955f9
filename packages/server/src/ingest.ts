// THE WRITE PATH. Everything that becomes an event comes through here, whoever says it:
//
//   draft ─▶ accept (state machine, children, plan gate) ─▶ redact, spill ─▶ commit (number, shape, mirror)
//         ─▶ store (fsync) ─▶ answer
//
// The reading side begins in stream.ts.

import { type Draft, is, limits, RunwireError } from "@runwire/protocol";
import type { CountedBlobs } from "./blobs/counted.js";
import { spilling } from "./blobs/spilling.js";
import { type Appended, appendDrafts, type ProducerClaim } from "./log/accept.js";
import { spawn } from "./log/children.js";
import type { Commit } from "./log/commit.js";
import { checkExternal, type Head, isEnded, wasErased } from "./log/head.js";
import { closeRequest, end, headIn, type Said, StaleFold } from "./log/lifecycle.js";
import { beginRoot, type CreatedRun, createdBefore, type NewRun, rootBegunBefore } from "./log/roots.js";
import type { Idempotency } from "./log/run-record.js";
import { type Redact, redacting } from "./redact.js";
import { runMap } from "./run-map.js";
import type { DueRun, RunKey, Store } from "./store.js";
import type { Transcripts } from "./transcripts.js";

export interface NewChild {
  readonly child_id?: string;
  readonly prompt: string;
  readonly tools_allowed?: readonly string[];
  /** The call that spawns it, so that its parent finds it again. */
  readonly call_id?: string;
  /** Which of its tools wait for somebody's approval. */
  readonly approvals?: string;
  /** Who writes it, where that is another than who writes its parent. */
  readonly agent?: string;
}

export interface SpawnedRun {
  readonly child_id: string;
  readonly replayed?: true;
}

export interface IngestOptions {
  /** How many runs of one tenant may live, children among them, for another root to be created. */
  readonly liveRunsMax?: number;
  /** Where large members go; without it they stay in their events. */
  readonly blobs?: CountedBlobs;
  /** What must not be stored; without it everything is, as it came. */
  readonly redact?: Redact;
  /** Rings once after the delay, unless the returned function is called first. */
  readonly after?: (delayMs: number, ring: () => void) => () => void;
}

export interface Ingest {
  /** Under a key that the tenant has used for the same request, answers what that was answered. */
  create(tenant: string, run: NewRun, idempotency?: Idempotency): Promise<CreatedRun>;
  /** What an earlier request under this key was answered; undefined where there was none. */
  created(tenant: string, idempotency: Idempotency): Promise<CreatedRun | undefined>;
  /** All or nothing. With a claim, drafts that are already stored are skipped. Only for runs that someone outside writes. */
  append(key: RunKey, drafts: readonly Draft[], claim?: ProducerClaim): Promise<Appended>;
  /** The same for the built-in agent, in any run. */
  appendAsAgent: Ingest["append"];
  spawn(key: RunKey, child: NewChild, idempotency?: Idempotency): Promise<SpawnedRun>;
  /** Any other change to a run, decided against its head inside the transaction. */
  change<T>(key: RunKey, decide: (commit: Commit) => T): Promise<T>;
  /** Does what is due: pending deltas, lost producers, requests past their time; less of it where one is leaving. */
  sweep(isLeaving?: () => boolean): Promise<Swept>;
  close(): void;
}

export interface Swept {
  /** Runs that were ended because their producers were lost. */
  readonly leasesLost: number;
  /** What could not be done, and is tried again in the next round. */
  readonly failures: readonly unknown[];
}

const foldTriesMax = 20;
/** What is due that a sweep commits together. */
const sweptAtOnceMax = 256;

function ringAfter(delayMs: number, ring: () => void): () => void {
  const timer = setTimeout(ring, delayMs);
  return () => clearTimeout(timer);
}

export function ingest(store: Store, transcripts: Transcripts, options: IngestOptions = {}): Ingest {
  const { liveRunsMax = Number.POSITIVE_INFINITY, blobs, redact, after = ringAfter } = options;
  const spilled = blobs === undefined ? store.append : spilling(store.append, blobs);
  const commits = redact === undefined ? spilled : redacting(spilled, redact);
  const ticks = runMap<() => void>();

  /** Commits, and sees to it that pending deltas go out in time. The timer only says when to try. */
  async function change<T>(key: RunKey, decide: (commit: Commit) => T): Promise<T> {
    const pending: string[] = [];
    const value = await commits(key, (commit) => {
      pending.length = 0;
      const decided = decide(commit);
      for (const run_id of commit.touched()) {
        commit.tick(run_id);
        if ((commit.head(run_id)?.groups.length ?? 0) > 0) pending.push(run_id);
      }
      return decided;
    }).catch(async (error: unknown) => {
      const missing = error instanceof RunwireError && error.code === "KAI-RUN-MISSING-0001";
      throw missing && (await store.isErased(key)) ? wasErased(key.run_id) : error;
    });
    for (const run_id of pending) tickLater({ tenant: key.tenant, run_id });
    return value;
  }

  function tickLater(key: RunKey): void {
    const { tenant, run_id } = key;
    if (ticks.has(tenant, run_id)) return;
    const cancel = after(limits.tickMs, () => {
      ticks.delete(tenant, run_id);
      const ticked = change(key, (commit) => {
        commit.tick(run_id);
        return (commit.head(run_id)?.groups.length ?? 0) > 0;
      });
      ticked.then(
        (isPending) => {
          // What this was to say went out with an append, and more has come since, for which it was too early.
          if (isPending) tickLater(key);
        },
        // A store that is down keeps the text in the full log; the sweeper tries again.
        () => {},
      );
    });
    ticks.set(tenant, run_id, cancel);
  }

  return {
    create: (tenant, run, idempotency) =>
      change({ tenant, run_id: "" }, (commit) =>
        beginRoot(commit, tenant, run, { idempotency, liveRunsMax }),
      ),

    created: (tenant, idempotency) =>
      change({ tenant, run_id: "" }, (commit) => rootBegunBefore(commit, idempotency)),

    append: (key, drafts, claim) => append(key, drafts, claim, checkExternal),
    appendAsAgent: (key, drafts, claim) => append(key, drafts, claim, () => {}),

    spawn: (key, { agent, ...child }, idempotency) =>
      change(key, (commit): SpawnedRun => {
        const made = idempotency && createdBefore(commit, key.run_id, idempotency);
        if (made !== undefined) return { child_id: made.run_id, replayed: true };
        return { child_id: spawn(commit, key.run_id, child, { idempotency, agent }) };
      }),

    change,

    async sweep(isLeaving = () => false) {
      let leasesLost = 0;
      const failures: unknown[] = [];
      const due = await store.due();
      // After a crash, or with a host of producers, all runs are due at once: many share a commit.
      for (let from = 0; from < due.length && !isLeaving(); from += sweptAtOnceMax) {
        const some = due.slice(from, from + sweptAtOnceMax).map(async (one) => {
          try {
            if ((await change(one.key, (commit) => doDue(commit, one))) === "lost") leasesLost += 1;
          } catch (error) {
            // One run that cannot be swept must not keep the others waiting; the next round tries it again.
            failures.push(error);
          }
        });
        await Promise.all(some);
      }
      return { leasesLost, failures };
    },

    close() {
      for (const cancel of ticks.values()) cancel();
    },
  };

  async function append(
    key: RunKey,
    drafts: readonly Draft[],
    claim: ProducerClaim | undefined,
    check: (head: Head) => void,
  ): Promise<Appended> {
    const said = new Map<string, Said>();
    for (let tries = 1; ; tries++) {
      await foldSaid(key, drafts, said);
      try {
        const appended = await change(key, (commit) => {
          check(headIn(commit, key.run_id));
          return appendDrafts(commit, key.run_id, drafts, claim, said);
        });
        store.renew(key);
        return appended;
      } catch (error) {
        if (!(error instanceof StaleFold)) throw error;
        if (tries === foldTriesMax) {
          throw new RunwireError(
            "KAI-SERVER-STORE-0001",
            "text was still being written while the run was ended",
          );
        }
      }
    }
  }

  /** A run that ends as done settles its message, whose text is folded from the log before the commit. */
  async function foldSaid(key: RunKey, drafts: readonly Draft[], said: Map<string, Said>): Promise<void> {
    const ending = new Set<string>();
    for (const draft of drafts)
      if (is(draft, "run.lifecycle") && draft.payload.state === "done")
        ending.add(draft.child_id ?? key.run_id);
    if (ending.size === 0) return;
    const root_id = (await store.head(key))?.run.root_id;
    for (const run_id of ending) {
      const ends: RunKey = { tenant: key.tenant, run_id };
      const head = await store.head(ends);
      // Of another tree it may not be told: that is refused in the commit.
      if (head?.unsettled !== true || head.run.root_id !== root_id) continue;
      const { pos, message } = await transcripts.at(ends, "default", head.views.default.pos);
      said.set(run_id, { pos, text: message });
      // Others come in between: a batch may end thousands.
      if (ending.size > 1) await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

function doDue(commit: Commit, due: DueRun): "lost" | undefined {
  const { run_id } = due.key;
  switch (due.why) {
    case "deltas":
      commit.tick(run_id);
      return undefined;
    case "request":
      closeRequest(commit, run_id, due.request_id, "expired");
      return undefined;
    case "lease":
      return loseProducer(commit, run_id) ? "lost" : undefined;
  }
}

/** Whether it was lost: the producer may have come back since the sweep began. */
function loseProducer(commit: Commit, run_id: string): boolean {
  const head = commit.head(run_id);
  if (head === undefined || isEnded(head) || !commit.leaseLost(run_id)) return false;
  end(commit, run_id, "error", `producer lost: its lease of ${head.run.lease_ms} ms was not renewed`);
  return true;
}
