// Lists of runs and sessions, newest first, and of children: the order is the file's, and what is told of a run its
// head's, which is newer in memory.

import { limits } from "@runwire/protocol";
import type { Head } from "../../log/head.js";
import type { RunMap } from "../../run-map.js";
import type { RunPage, RunQuery, Session, Store } from "../../store.js";
import type { Catalogue, StoredRun, TitledTurn } from "./catalogue.js";
import type { GroupCommit } from "./group-commit.js";

export interface ListParts {
  readonly runs: Catalogue;
  readonly heads: RunMap<Head>;
  readonly commits: GroupCommit;
}

export function lists({
  runs,
  heads,
  commits,
}: ListParts): Pick<Store, "listRuns" | "session" | "listSessions" | "children"> {
  /** What a list shows, below its cursor. */
  function* roots(tenant: string, query: RunQuery): Generator<StoredRun> {
    for (const stored of runs.roots(tenant, query, query.cursor ?? "\uffff")) {
      const { run_id } = stored.head.run;
      if (commits.isArriving(tenant, run_id)) continue;
      const head = heads.get(tenant, run_id) ?? stored.head;
      if (query.state === undefined || head.state === query.state) yield { ...stored, head };
    }
  }

  function pageOf(tenant: string, query: RunQuery): RunPage & { readonly bytes: number } {
    const found: Head[] = [];
    let bytes = 0;
    for (const { head, bytes: more } of roots(tenant, query)) {
      found.push(head);
      bytes += more;
      // By bytes too: what is small by count may be more than fits into one text.
      if (found.length === query.limit || bytes >= limits.pageBytesMax)
        return { heads: found, next: head.run.run_id, bytes };
    }
    return { heads: found, next: null, bytes };
  }

  function sessionOf(
    tenant: string,
    session_id: string,
    limit: number,
  ): { readonly session: Session; readonly bytes: number } | undefined {
    const { heads: turns, bytes } = pageOf(tenant, { session_id, limit });
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
    return stored && { ...stored, title: titleOf(stored.run_id) ?? stored.title };
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
      const { heads, next } = pageOf(tenant, query);
      return { heads, next };
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
