import { DatabaseSync } from "@photostructure/sqlite";
import { RunwireError } from "@runwire/protocol";
import { addChecksums } from "./checksum.js";

/** What is asked of the file on the main thread. A disk that does not give it is the store's trouble, and no bug. */
export interface Reader {
  prepare(sql: string): Query;
  /** To be told of what came back and is not what was stored. */
  failed(error: unknown): void;
  close(): void;
}

/** Rows with a column `damage` are given without looking at it: where it says something, the query is refused with it. */
export interface Query {
  get(...values: (string | number | null)[]): unknown;
  all(...values: (string | number | null)[]): unknown[];
  /** Row by row: whoever leaves early has read no more than that. */
  iterate(...values: (string | number | null)[]): Iterable<unknown>;
}

/** A connection that only reads. SQLite takes a page that the disk cannot read for one that is damaged. */
export function openReader(path: string, failed: (error: unknown) => void = () => {}): Reader {
  const db = new DatabaseSync(path, { timeout: 10_000, readOnly: true });
  addChecksums(db);
  // Of what is asked for wrongly SQLite says so too; that stays what it is, a bug.
  const told = (cause: unknown): unknown => {
    if (cause instanceof RunwireError) return cause;
    const { message } = cause as Error;
    const isDamaged = /malformed|not a database|too large to be represented/.test(message);
    if (!isDamaged && !/I\/O error|unable to open|is locked|out of memory|is closed/.test(message))
      return cause;
    const error = new RunwireError(isDamaged ? "KAI-SERVER-STORE-0003" : "KAI-SERVER-STORE-0001", message, {
      cause,
    });
    failed(error);
    return error;
  };
  function asked<T>(ask: () => T): T {
    try {
      return ask();
    } catch (error) {
      throw told(error);
    }
  }
  function whole<T>(row: T): T {
    const { damage } = (row ?? {}) as { readonly damage?: string | null };
    if (damage == null) return row;
    const error = new RunwireError("KAI-SERVER-STORE-0003", damage);
    failed(error);
    throw error;
  }
  return {
    prepare(sql) {
      const statement = db.prepare(sql);
      return {
        get: (...values) => whole(asked(() => statement.get(...values))),
        all: (...values) => asked(() => statement.all(...values)).map(whole),
        *iterate(...values) {
          // A loop closes the statement for whoever leaves early: an open one would go on seeing the file as it was.
          try {
            for (const row of statement.iterate(...values)) yield whole(row);
          } catch (error) {
            throw told(error);
          }
        },
      };
    },
    failed,
    close: () => db.close(),
  };
}
