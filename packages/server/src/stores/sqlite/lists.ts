// Lists of runs and sessions, newest first, and of children: the order is the file's, and what is told of a run its
// head's, which is newer in memory.

import { isFinal, type RunState } from "@runwire/protocol";
import type { Head } from "../../log/head.js";
import type { RunMap } from "../../run-map.js";
import type { RunQuery, Session, Store } from "../../store.js";
import type { Catalogue } from "./catalogue.js";
import type { GroupCommit } from "./group-commit.js";

export interface ListParts {
  readonly runs: Catalogue;
  readonly heads: RunMap<Head>;
  readonly commits: GroupCommit;
}

/** Live runs that are looked at in one turn of the loop. */
const liveAtOnce = 512;

export function lists({
  runs,
  heads,
  commits,
}: ListParts): Pick<Store, "listRuns" | "session" | "listSessions" | "children"> {
  /** Roots below the cursor, a page at a time; of no state, or of a final one. */
  function* roots(tenant: string, query: RunQuery): Generator<Head> {
    let below = query.cursor ?? "\uffff";
    for (;;) {
      const page = runs.roots(tenant, query, below);
      for (const stored of page) {
        below = stored.run.run_id;
        if (!commits.isArriving(tenant, below)) yield heads.get(tenant, below) ?? stored;
      }
      if (page.length < query.limit) return;
    }
  }

  /**
   * Live roots of a state below the cursor, page by page. Which state a live run is in is known in memory alone, and any
   * number may be in another: only their ids are read, and others come first between two pages.
   */
  async function* livePages(
    tenant: string,
    { state, session_id, agent, cursor = "\uffff" }: RunQuery,
  ): AsyncGenerator<readonly Head[]> {
    for (let below = cursor; ; ) {
      const page = runs.live(tenant, session_id, liveAtOnce, below);
      // One that is just arriving has no head yet.
      yield page
        .flatMap((run_id) => heads.get(tenant, run_id) ?? [])
        .filter((head) => head.state === state && head.run.parent_id === null)
        .filter(({ run }) => agent === undefined || run.agent === agent);
      below = page.at(-1) ?? "";
      if (page.length < liveAtOnce) return;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  function sessionOf(tenant: string, session_id: string, limit: number): Session | undefined {
    const turns: Head[] = [];
    for (const head of roots(tenant, { session_id, limit })) if (turns.push(head) === limit) break;
    if (turns.length === 0) return undefined;
    const turns_total = runs.turnsTotal(tenant, session_id) - commits.turnsArriving(tenant, session_id);
    return { session_id, title: firstTitle(tenant, session_id), turns: turns.reverse(), turns_total };
  }

  function firstTitle(tenant: string, session_id: string): string | null {
    const titleOf = (run_id: string): string | null => heads.get(tenant, run_id)?.title ?? null;
    const stored = runs.titledTurn(tenant, session_id);
    // The file learns a turn's title when its events are compacted, or it ends.
    for (const run_id of runs.liveTurns(tenant, session_id)) {
      if (stored !== undefined && run_id >= stored.run_id) break;
      const title = titleOf(run_id);
      if (title !== null) return title;
    }
    return stored === undefined ? null : (titleOf(stored.run_id) ?? stored.title);
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
      const found: Head[] = [];
      const isLive = query.state !== undefined && !isFinal(query.state as RunState);
      for await (const page of isLive ? livePages(tenant, query) : [roots(tenant, query)]) {
        for (const head of page) {
          if (query.state !== undefined && head.state !== query.state) continue;
          if (found.push(head) === query.limit) return { heads: found, next: head.run.run_id };
        }
      }
      return { heads: found, next: null };
    },

    session: async (tenant, session_id, limit) => sessionOf(tenant, session_id, limit),

    async listSessions(tenant, { limit, cursor = "\uffff" }) {
      const page = runs.sessions(tenant, limit, cursor);
      const next = page.length < limit ? null : (page.at(-1)?.run_id ?? null);
      return { sessions: page.flatMap(({ session_id }) => sessionOf(tenant, session_id, 1) ?? []), next };
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
