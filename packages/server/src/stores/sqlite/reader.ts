import { DatabaseSync } from "@photostructure/sqlite";
import { RunwireError } from "@runwire/protocol";

/** What is asked of the file on the main thread. A disk that does not give it is the store's trouble, and no bug. */
export interface Reader {
  prepare(sql: string): Query;
  /** To be told of what came back and is not what was stored. */
  failed(error: unknown): void;
  close(): void;
}

export interface Query {
  get(...values: (string | number | null)[]): unknown;
  all(...values: (string | number | null)[]): unknown[];
  /** Row by row: whoever leaves early has read no more than that. */
  iterate(...values: (string | number | null)[]): Iterable<unknown>;
}

/** A connection that only reads. SQLite takes a page that the disk cannot read for one that is damaged. */
export function openReader(path: string, failed: (error: unknown) => void = () => {}): Reader {
  const db = new DatabaseSync(path, { timeout: 10_000, readOnly: true });
  // Of what is asked for wrongly SQLite says so too; that stays what it is, a bug.
  const told = (cause: unknown): unknown => {
    const { message } = cause as Error;
    const isDamaged = /malformed|not a database/.test(message);
    if (!isDamaged && !/I\/O error|unable to open|is locked|out of memory|is closed/.test(message))
      return cause;
    const error = new RunwireError(isDamaged ? "KAI-SERVER-STORE-0003" : "KAI-SERVER-STORE-0001", message, {
      cause,
    });
    failed(error);
    return error;
  };
  return {
    prepare(sql) {
      const statement = db.prepare(sql);
      return {
        get(...values) {
          try {
            return statement.get(...values);
          } catch (error) {
            throw told(error);
          }
        },
        all(...values) {
          try {
            return statement.all(...values);
          } catch (error) {
            throw told(error);
          }
        },
        *iterate(...values) {
          try {
            yield* statement.iterate(...values);
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
