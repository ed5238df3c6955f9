// Lists of runs and sessions, newest first, and of children: the order is the file's, and what is told of a run its
// head's, which is newer in memory.

import { isFinal, limits, type RunState } from "@runwire/protocol";
import type { Head } from "../../log/head.js";
import type { RunMap } from "../../run-map.js";
import type { RunQuery, Session, Store } from "../../store.js";
import type { Catalogue, StoredRun, TitledTurn } from "./catalogue.js";
import type { GroupCommit } from "./group-commit.js";

export interface ListParts {
  readonly runs: Catalogue;
  readonly heads: RunMap<Head>;
  readonly commits: GroupCommit;
}

interface Page {
  readonly heads: Head[];
  bytes: number;
}

/** Live runs that are looked at in one turn of the loop. */
const liveAtOnce = 512;

export function lists({
  runs,
  heads,
  commits,
}: ListParts): Pick<Store, "listRuns" | "session" | "listSessions" | "children"> {
  /** What a list shows, below its cursor: of no state, or of a final one. */
  function* roots(tenant: string, query: RunQuery): Generator<StoredRun> {
    for (const stored of runs.roots(tenant, query, query.cursor ?? "\uffff")) {
      const { run_id } = stored.head.run;
      if (commits.isArriving(tenant, run_id)) continue;
      const head = heads.get(tenant, run_id) ?? stored.head;
      if (query.state === undefined || head.state === query.state) yield { ...stored, head };
    }
  }

  /**
   * Live roots of a state below the cursor, some at a time. Which state a live run is in is known in memory alone, and any
   * number may be in another: only their ids are read, and others come first in between.
   */
  async function* liveRoots(
    tenant: string,
    { state, session_id, agent, cursor = "\uffff" }: RunQuery,
  ): AsyncGenerator<Iterable<StoredRun>> {
    function* shown(run_ids: readonly string[]): Generator<StoredRun> {
      for (const run_id of run_ids) {
        const head = heads.get(tenant, run_id);
        // One that is just arriving has no head yet.
        if (head === undefined || head.state !== state || head.run.parent_id !== null) continue;
        if (agent === undefined || head.run.agent === agent)
          yield { head, bytes: JSON.stringify(head.run).length };
      }
    }
    for (let below = cursor; ; ) {
      const some = runs.live(tenant, session_id, liveAtOnce, below);
      yield shown(some);
      below = some.at(-1) ?? "";
      if (some.length < liveAtOnce) return;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Whether the page is full: by bytes too, because what is small by count may be more than fits into one text. */
  function fill(page: Page, found: Iterable<StoredRun>, limit: number): boolean {
    for (const { head, bytes } of found) {
      page.heads.push(head);
      page.bytes += bytes;
      if (page.heads.length === limit || page.bytes >= limits.pageBytesMax) return true;
    }
    return false;
  }

  function sessionOf(
    tenant: string,
    session_id: string,
    limit: number,
  ): { readonly session: Session; readonly bytes: number } | undefined {
    const page: Page = { heads: [], bytes: 0 };
    fill(page, roots(tenant, { session_id, limit }), limit);
    const { heads: turns, bytes } = page;
    if (turns.length === 0) return undefined;
    const turns_total = runs.turnsTotal(tenant, session_id, commits.turnsArriving(tenant, session_id));
    const { title = null, run_id: titledBy = null } = firstTitled(tenant, session_id) ?? {};
    return { session: { session_id, title, titledBy, turns: turns.toReversed(), turns_total }, bytes };
  }

  function firstTitled(tenant: string, session_id: string): TitledTurn | undefined {
    const titleOf = (run_id: string): string | null => heads.get(tenant, run_id)?.title ?? null;
    const stored = runs.titledTurn(tenant, session_id);
    // The file learns a turn's title when its events are compacted, or it ends.
    for (const run_id of runs.liveTurns(tenant, session_id)) {
      if (stored !== undefined && run_id >= stored.run_id) break;
      const title = titleOf(run_id);
      if (title !== null) return { run_id, title };
    }
    if (stored === undefined) return undefined;
    const { run_id } = stored;
    // The file may know a title that is in doubt, which nobody may be shown.
    const title = heads.has(tenant, run_id) ? titleOf(run_id) : stored.title;
    return title === null ? undefined : { run_id, title };
  }

  /** Children above the cursor, a page at a time. */
  function* childrenOf(tenant: string, parent_id: string, limit: number, cursor: string): Generator<string> {
    for (let above = cursor; ; ) {
      const page = runs.children(tenant, parent_id, limit, above);
      for (const run_id of page) {
        above = run_id;
        if (!commits.isArriving(tenant, run_id)) yield run_id;
      }
      if (page.length < limit) return;
    }
  }

  return {
    async listRuns(tenant, query) {
      const page: Page = { heads: [], bytes: 0 };
      const isLive = query.state !== undefined && !isFinal(query.state as RunState);
      for await (const some of isLive ? liveRoots(tenant, query) : [roots(tenant, query)]) {
        if (fill(page, some, query.limit))
          return { heads: page.heads, next: page.heads.at(-1)?.run.run_id ?? null };
      }
      return { heads: page.heads, next: null };
    },

    session: async (tenant, session_id, limit) => sessionOf(tenant, session_id, limit)?.session,

    async listSessions(tenant, { limit, cursor = "\uffff" }) {
      const page = runs.sessions(tenant, limit, cursor);
      const sessions: Session[] = [];
      let bytes = 0;
      for (const { session_id, run_id } of page) {
        const found = sessionOf(tenant, session_id, 1);
        if (found === undefined) continue;
        sessions.push(found.session);
        bytes += found.bytes;
        if (bytes >= limits.pageBytesMax) return { sessions, next: run_id };
      }
      return { sessions, next: page.length < limit ? null : (page.at(-1)?.run_id ?? null) };
    },

    async children({ tenant, run_id }, { limit, cursor = "" }) {
      const found: string[] = [];
      // One more than asked for tells whether there are more.
      for (const child of childrenOf(tenant, run_id, limit + 1, cursor)) {
        if (found.length === limit) return { children: found, next: found.at(-1) ?? null };
        found.push(child);
      }
      return { children: found, next: null };
    },
  };
}
