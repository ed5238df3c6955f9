import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StoredEvent } from "@runwire/protocol";
import { expect, it } from "vitest";
import { openDatabase } from "./open.js";
import { openReader, type Reader } from "./reader.js";
import { schema, type Write } from "./schema.js";
import { segmentReader } from "./segment-reader.js";
import { toSegments } from "./segments.js";
import { transaction } from "./transaction.js";

const id = (pos: number) => `evt_${String(pos).padStart(26, "0")}`;
const ts = "2026-01-01T00:00:00.000Z";

/** A segment of the events up to a position. */
function add(tenant: string, log: string, to: number): Write[] {
  const events = Array.from(
    { length: to },
    (_, i) => new StoredEvent(id(i + 1), ts, "custom", log, null, i + 1, 0, `{"of":"${tenant}"}`, null),
  );
  return toSegments(events).map(
    (s): Write => [
      ...(["addSegment", tenant, log, "full", s.first_pos, s.last_pos, s.last_seq, s.bytes] as const),
      ...[s.marks, s.body, s.crc],
    ],
  );
}

it("a last segment that cannot be looked up is left to whoever reads it, and what follows goes beside it", () => {
  const damaged = (): never => {
    throw new Error("database disk image is malformed");
  };
  const segments = segmentReader({
    prepare: () => ({ get: damaged, all: damaged, iterate: damaged }),
    failed: () => {},
    close: () => {},
  });
  expect(segments.lastIfSmall("acme", "run_a", "full", 1024)).toBeUndefined();
  expect(() => segments.read("acme", "run_a", "full", 0)).toThrow(/malformed/);
});

it("a segment that is replaced while it is looked for is looked for again, and never another's", () => {
  const folder = mkdtempSync(join(tmpdir(), "runwire-segments-"));
  const path = join(folder, "runwire.db");
  const db = openDatabase(path, "os");
  const file = openReader(path);
  try {
    db.exec(schema);
    const write = transaction(db);
    let meanwhile: readonly Write[] = [];
    // The writer is a thread of its own: it may commit between any two questions.
    const reader: Reader = {
      ...file,
      prepare(sql) {
        const query = file.prepare(sql);
        const get = (...values: Parameters<typeof query.get>): unknown => {
          const found = query.get(...values);
          write(meanwhile);
          meanwhile = [];
          return found;
        };
        return { ...query, get };
      },
    };
    const segments = segmentReader(reader);
    const posRead = () =>
      segments.read("acme", "run_a", "full", 0).events.map(({ payload, pos }) => [payload, pos]);
    write(add("acme", "run_a", 1));
    meanwhile = [["dropSegment", 1], ...add("rival", "run_a", 1), ...add("acme", "run_a", 2)];
    expect(posRead()).toEqual([
      [{ of: "acme" }, 1],
      [{ of: "acme" }, 2],
    ]);
    meanwhile = [["dropSegments", "acme", "run_b"]];
    write(add("acme", "run_b", 1));
    expect(segments.read("acme", "run_b", "full", 0).events).toEqual([]);
    // Gone is not damaged: whoever reads on from the start is told that it is gone.
    expect(segments.posOfSeq("acme", "run_b", "full", 1)).toBe(0);
    expect(() => segments.posOfSeq("acme", "run_a", "full", 1)).toThrow(/seq 1 is lost/);
  } finally {
    file.close();
    db.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
