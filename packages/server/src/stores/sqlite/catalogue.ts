// What is looked up in the file by name: runs, heads of runs that are neither live nor hot, feeds, snapshots.

import { type EventType, RunwireError, StoredEvent, type View } from "@runwire/protocol";
import { type Head, storedHead } from "../../log/head.js";
import { type BlobRef, weightOf } from "../../log/record.js";
import type { RunRecord } from "../../log/run-record.js";
import type { KeptSnapshot, RunQuery } from "../../store.js";
import { damageOf } from "./checksum.js";
import type { Query, Reader } from "./reader.js";
import { headSession, headTitled } from "./schema.js";

interface RunRow {
  readonly record: string;
  readonly head: string | null;
}

export interface SessionRow {
  readonly session_id: string;
  readonly run_id: string;
}

export interface StoredRun {
  readonly head: Head;
  /** About what it takes as a text. */
  readonly bytes: number;
}

export interface TitledTurn {
  readonly run_id: string;
  readonly title: string;
}

export interface Catalogue {
  head(tenant: string, log: string): Head | undefined;
  /** Roots of a tenant below a run id, newest first, as far as the file knows them, in any state or a final one: row by row. */
  roots(tenant: string, query: RunQuery, below: string): Iterable<StoredRun>;
  /** Runs of a tenant that live, below a run id, newest first; of a session its turns, and children among them else. */
  live(tenant: string, session_id: string | undefined, limit: number, below: string): readonly string[];
  /** The first turn of a session that has a title, as far as the file knows. */
  titledTurn(tenant: string, session_id: string): TitledTurn | undefined;
  /** Turns of a session that live, oldest first: row by row. */
  liveTurns(tenant: string, session_id: string): Iterable<string>;
  /** How many turns a session has, without these: the file may know them already. */
  turnsTotal(tenant: string, session_id: string, without: readonly string[]): number;
  /** Sessions by the ids of their last turns, below one, newest first. */
  sessions(tenant: string, limit: number, below: string): readonly SessionRow[];
  /** Children of a run above a run id, by their ids. */
  children(tenant: string, parent_id: string, limit: number, above: string): readonly string[];
  /** The ids of all runs of a tree. */
  tree(tenant: string, root_id: string): readonly string[];
  createdUnder(tenant: string, key: string): RunRecord | undefined;
  isErased(tenant: string, run_id: string): boolean;
  /** Entries from after one position up to another: at least one if there is one, and at most about `bytesMax`. */
  feedEvents(
    tenant: string,
    log: string,
    after: number,
    upTo: number,
    bytesMax: number,
  ): readonly StoredEvent[];
  oldestOfFeed(tenant: string, log: string): number;
  snapshotBefore(tenant: string, log: string, view: View, pos: number): KeptSnapshot | undefined;
  blob(tenant: string, ref: string): BlobRef | undefined;
  /** The blobs that a tree refers to. */
  blobsOf(tenant: string, root_id: string): readonly string[];
}

/** What is wrong with a run or its head. One that has ended has a head, which says how. */
export const runDamage = `coalesce(${damageOf("runs")}, iif(heads.log IS NOT NULL, ${damageOf("heads")},
  iif(runs.state IS NULL, NULL, 'the head of ' || runs.run_id || ' is lost')))`;

export function runsWithHeads(runs = "runs"): string {
  return `${runs} LEFT JOIN heads ON heads.tenant = runs.tenant AND heads.log = runs.run_id`;
}

export function catalogue(reader: Reader): Catalogue {
  const selectFrom = (runs: string): string =>
    `SELECT record, head, ${runDamage} AS damage FROM ${runsWithHeads(runs)}`;
  const one = reader.prepare(`${selectFrom("runs")} WHERE runs.tenant = ? AND run_id = ?`);
  // Each list has an index of its own: of the runs that it does not show there may be a million. Without statistics the
  // planner takes the primary key, and walks through all runs of the tenant: it is told.
  const rootsIn = (index: string, which: string): Query =>
    reader.prepare(
      `${selectFrom(`runs INDEXED BY ${index}`)} WHERE runs.tenant = ?1 AND parent_id IS NULL AND run_id < ?2
       AND ${which} ORDER BY run_id DESC`,
    );
  const rootsOf = {
    all: rootsIn("runs_roots", "true"),
    ofAgent: rootsIn("runs_by_agent", "agent = ?3"),
    ofState: rootsIn("runs_by_state", "state = ?3"),
    ofBoth: rootsIn("runs_by_agent_and_state", "agent = ?3 AND state = ?4"),
    ofSession: rootsIn(
      "runs_by_session",
      "session_id = ?3 AND (?4 IS NULL OR agent = ?4) AND (?5 IS NULL OR state = ?5)",
    ),
  };

  function roots(tenant: string, { state, session_id, agent }: RunQuery, below: string): Iterable<unknown> {
    const from = [tenant, below] as const;
    if (session_id !== undefined)
      return rootsOf.ofSession.iterate(...from, session_id, agent ?? null, state ?? null);
    if (agent === undefined)
      return state === undefined ? rootsOf.all.iterate(...from) : rootsOf.ofState.iterate(...from, state);
    return state === undefined
      ? rootsOf.ofAgent.iterate(...from, agent)
      : rootsOf.ofBoth.iterate(...from, agent, state);
  }
  const liveRuns = reader.prepare(
    `SELECT run_id FROM runs INDEXED BY runs_live
     WHERE tenant = ? AND run_id < ? AND state IS NULL ORDER BY run_id DESC LIMIT ?`,
  );
  const liveTurnsBelow = reader.prepare(
    `SELECT run_id FROM runs INDEXED BY runs_live_turns
     WHERE tenant = ? AND run_id < ? AND parent_id IS NULL AND state IS NULL AND session_id = ?
     ORDER BY run_id DESC LIMIT ?`,
  );
  const titledTurn = reader.prepare(
    `SELECT log AS run_id, iif(json_valid(head), head ->> '$.title', NULL) AS title, ${damageOf("heads")} AS damage
     FROM heads INDEXED BY heads_titled WHERE tenant = ? AND ${headSession} = ? AND ${headTitled} ORDER BY log LIMIT 1`,
  );
  const liveTurns = reader.prepare(
    `SELECT run_id FROM runs INDEXED BY runs_live_turns
     WHERE tenant = ? AND session_id = ? AND parent_id IS NULL AND state IS NULL ORDER BY run_id`,
  );
  // One statement: between two of them a commit may come.
  const turnsTotal = reader.prepare(
    `SELECT turns - (SELECT count(*) FROM json_each(?3) CROSS JOIN runs WHERE tenant = ?1 AND run_id = value) AS turns,
     ${damageOf("sessions")} AS damage FROM sessions WHERE tenant = ?1 AND session_id = ?2`,
  );
  const sessions = reader.prepare(
    `SELECT session_id, last_turn AS run_id, ${damageOf("sessions")} AS damage FROM sessions INDEXED BY sessions_by_last_turn
     WHERE tenant = ? AND last_turn < ? ORDER BY last_turn DESC LIMIT ?`,
  );
  const children = reader.prepare(
    `SELECT run_id, ${damageOf("runs")} AS damage FROM runs INDEXED BY runs_by_parent
     WHERE tenant = ? AND parent_id = ? AND run_id > ? ORDER BY run_id LIMIT ?`,
  );
  const byRoot = reader.prepare(
    "SELECT run_id FROM runs INDEXED BY runs_by_root WHERE tenant = ? AND root_id = ?",
  );
  const byKey = reader.prepare(
    `SELECT record, ${damageOf("runs")} AS damage FROM runs WHERE tenant = ? AND made_under = ?`,
  );
  const tomb = reader.prepare("SELECT 1 FROM tombstones WHERE tenant = ? AND run_id = ?");
  const feed = reader.prepare(
    `SELECT pos, seq, id, ts, type, by_run, payload, ${damageOf("feed")} AS damage
     FROM feed WHERE tenant = ? AND log = ? AND pos > ? AND pos <= ? ORDER BY pos`,
  );
  const oldest = reader.prepare("SELECT coalesce(min(pos), 1) AS pos FROM feed WHERE tenant = ? AND log = ?");
  const snapshots = reader.prepare(
    `SELECT pos, transcript, ${damageOf("snapshots")} AS lost
     FROM snapshots WHERE tenant = ? AND log = ? AND view = ? AND pos <= ? ORDER BY pos DESC`,
  );
  const blob = reader.prepare(
    `SELECT ref, media_type, bytes, ${damageOf("blob_refs")} AS damage FROM blob_refs WHERE tenant = ? AND ref = ? LIMIT 1`,
  );
  const blobs = reader.prepare("SELECT ref FROM blob_refs WHERE tenant = ? AND root_id = ?");

  function lost(detail: string): RunwireError {
    const error = new RunwireError("KAI-SERVER-STORE-0003", detail);
    reader.failed(error);
    return error;
  }

  const headOf = ({ record, head }: RunRow): Head => storedHead(record, head);

  return {
    head(tenant, log) {
      const row = one.get(tenant, log) as RunRow | undefined;
      return row === undefined ? undefined : headOf(row);
    },
    *roots(tenant, query, below) {
      for (const row of roots(tenant, query, below) as Iterable<RunRow>)
        yield { head: headOf(row), bytes: (row.head ?? row.record).length };
    },
    live(tenant, session_id, limit, below) {
      const rows =
        session_id === undefined
          ? liveRuns.all(tenant, below, limit)
          : liveTurnsBelow.all(tenant, below, session_id, limit);
      return (rows as { run_id: string }[]).map(({ run_id }) => run_id);
    },
    titledTurn: (tenant, session_id) => titledTurn.get(tenant, session_id) as TitledTurn | undefined,
    *liveTurns(tenant, session_id) {
      for (const row of liveTurns.iterate(tenant, session_id)) yield (row as { run_id: string }).run_id;
    },
    turnsTotal(tenant, session_id, without) {
      const row = turnsTotal.get(tenant, session_id, JSON.stringify(without)) as
        | { turns: number }
        | undefined;
      return row?.turns ?? 0;
    },
    sessions: (tenant, limit, below) => sessions.all(tenant, below, limit) as unknown as SessionRow[],
    children: (tenant, parent_id, limit, above) =>
      (children.all(tenant, parent_id, above, limit) as { run_id: string }[]).map(({ run_id }) => run_id),
    tree: (tenant, root_id) =>
      (byRoot.all(tenant, root_id) as { run_id: string }[]).map(({ run_id }) => run_id),
    createdUnder(tenant, key) {
      const row = byKey.get(tenant, key) as { record: string } | undefined;
      return row === undefined ? undefined : (JSON.parse(row.record) as RunRecord);
    },
    isErased: (tenant, run_id) => tomb.get(tenant, run_id) !== undefined,
    feedEvents(tenant, log, after, upTo, bytesMax) {
      const events: StoredEvent[] = [];
      let bytes = 0;
      for (const row of feed.iterate(tenant, log, after, upTo) as Iterable<FeedRow>) {
        const { id, ts, type, by_run, pos, seq, payload } = row;
        const last = events.at(-1);
        if (last !== undefined && pos !== last.pos + 1)
          throw lost(`${log}: the entry after ${last.pos} is lost`);
        const e = new StoredEvent(id, ts, type, log, by_run, pos, seq, payload, null);
        bytes += weightOf(e);
        if (bytes > bytesMax && events.length > 0) break;
        events.push(e);
      }
      return events;
    },
    oldestOfFeed: (tenant, log) => (oldest.get(tenant, log) as { pos: number }).pos,
    snapshotBefore(tenant, log, view, pos) {
      for (const row of snapshots.iterate(tenant, log, view, pos) as Iterable<SnapshotRow>) {
        if (row.lost === null) return { pos: row.pos, transcriptText: row.transcript };
        // The operator hears of it. Whoever folds begins earlier, and comes to the same.
        lost(row.lost);
      }
      return undefined;
    },
    blob(tenant, ref) {
      const row = blob.get(tenant, ref) as BlobRef | undefined;
      return row && { ref: row.ref, media_type: row.media_type, bytes: row.bytes };
    },
    blobsOf: (tenant, root_id) => (blobs.all(tenant, root_id) as { ref: string }[]).map(({ ref }) => ref),
  };
}

interface SnapshotRow {
  readonly pos: number;
  readonly transcript: string;
  /** What is wrong with it. */
  readonly lost: string | null;
}

interface FeedRow {
  readonly pos: number;
  readonly seq: number;
  readonly id: string;
  readonly ts: string;
  readonly type: EventType;
  readonly by_run: string;
  readonly payload: string;
}
