// The file's layout.
//
//   hot       records in the order of commits, each with its list of places, a row for those of one tree in a commit;
//             read once, at the start
//   segments  what hot rows become: 64–256 KB of one log and view, as a JSON array of its events
//   heads     a log's head as of a hot row; later hot rows are folded onto it
//   runs      runs as they were created, and how they ended
//   sessions  how many turns each has, and the last
//   feed      entries of feeds, which belong to no tree
//   snapshots transcripts, so that folds begin near the end
//   blob_refs which trees refer to a blob; the blobs themselves are elsewhere
//   tombstones  runs that were erased
//   tenants   what was set for a tenant
//   allowed   tools that somebody has approved beyond one call: in a session, or (session '') for the tenant
//   grants    stream tickets and console sessions, by the hash of their secret
//   meta      the file's format, and the age clock
//
// A row that is read has a checksum: `crc` where this server's code compares it, `row_crc` where SQL does (checksum.ts).
// Nothing is keyed by run on the way in: that would dirty a page per live run in every commit. Ids are a tenant's
// own, so every key begins with the tenant: looking for another tenant's run finds what looking for none would.

import { adding, coveredTables, crcSql, setting, settingFirst } from "./checksum.js";

/** Files of the format before had no checksums but in `hot` and `segments`; `upgrade` makes them. */
export const formatVersion = 5;
export const upgradableVersion = 4;

/** Of a head: its session, and whether it is a turn with a title. One that is damaged is in nobody's way. */
export const headSession = "head ->> '$.run.session_id'";
export const headTitled =
  "json_valid(head) AND head ->> '$.title' IS NOT NULL AND head ->> '$.run.parent_id' IS NULL";

export const schema = `
CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value TEXT NOT NULL, row_crc INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs(
  tenant TEXT NOT NULL,
  run_id TEXT NOT NULL,
  root_id TEXT NOT NULL,
  parent_id TEXT,
  session_id TEXT,
  agent TEXT,
  made_under TEXT,       -- the key of the request that made it
  state TEXT,            -- set when the run has ended
  ended_ms REAL,         -- and when, by the age clock
  full_gone INTEGER NOT NULL DEFAULT 0,
  record TEXT NOT NULL,
  row_crc INTEGER,
  PRIMARY KEY(tenant, run_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS runs_roots ON runs(tenant, run_id) WHERE parent_id IS NULL;
CREATE INDEX IF NOT EXISTS runs_by_session ON runs(tenant, session_id, run_id)
  WHERE parent_id IS NULL AND session_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_by_agent ON runs(tenant, agent, run_id)
  WHERE parent_id IS NULL AND agent IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_by_state ON runs(tenant, state, run_id)
  WHERE parent_id IS NULL AND state IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_by_agent_and_state ON runs(tenant, agent, state, run_id)
  WHERE parent_id IS NULL AND agent IS NOT NULL AND state IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_live_turns ON runs(tenant, session_id, run_id)
  WHERE parent_id IS NULL AND session_id IS NOT NULL AND state IS NULL;
CREATE INDEX IF NOT EXISTS runs_by_root ON runs(tenant, root_id);
CREATE INDEX IF NOT EXISTS runs_by_parent ON runs(tenant, parent_id, run_id) WHERE parent_id IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS runs_by_key ON runs(tenant, made_under) WHERE made_under IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_ended ON runs(tenant, state, ended_ms, run_id)
  WHERE parent_id IS NULL AND state IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_ended_full ON runs(tenant, state, ended_ms, run_id)
  WHERE parent_id IS NULL AND state IS NOT NULL AND full_gone = 0;
CREATE INDEX IF NOT EXISTS runs_live ON runs(tenant, run_id) WHERE state IS NULL;
CREATE TABLE IF NOT EXISTS heads(
  tenant TEXT NOT NULL,
  log TEXT NOT NULL,
  as_of INTEGER NOT NULL,
  head TEXT NOT NULL,
  row_crc INTEGER,
  PRIMARY KEY(tenant, log)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS heads_titled ON heads(tenant, ${headSession}, log) WHERE ${headTitled};
CREATE TABLE IF NOT EXISTS hot(
  row INTEGER PRIMARY KEY,
  body TEXT NOT NULL,    -- as hot-row.ts writes it
  crc INTEGER NOT NULL   -- of both
);
CREATE TABLE IF NOT EXISTS segments(
  segment INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  log TEXT NOT NULL,
  view TEXT NOT NULL,
  first_pos INTEGER NOT NULL,
  last_pos INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  marks BLOB NOT NULL,
  body BLOB NOT NULL,
  crc INTEGER NOT NULL,  -- of the marks and the body
  row_crc INTEGER        -- of that and all else
);
CREATE INDEX IF NOT EXISTS segments_by_log ON segments(tenant, log, view, last_pos);
CREATE TABLE IF NOT EXISTS feed(
  tenant TEXT NOT NULL,
  log TEXT NOT NULL,
  pos INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  id TEXT NOT NULL,
  ts TEXT NOT NULL,
  type TEXT NOT NULL,
  by_run TEXT NOT NULL,
  payload TEXT NOT NULL,
  row_crc INTEGER,
  PRIMARY KEY(tenant, log, pos)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS feed_by_run ON feed(tenant, by_run);
CREATE TABLE IF NOT EXISTS snapshots(
  tenant TEXT NOT NULL,
  log TEXT NOT NULL,
  view TEXT NOT NULL,
  pos INTEGER NOT NULL,
  transcript TEXT NOT NULL,
  row_crc INTEGER,
  PRIMARY KEY(tenant, log, view, pos)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tombstones(
  tenant TEXT NOT NULL,
  run_id TEXT NOT NULL,
  erased_at TEXT NOT NULL,
  PRIMARY KEY(tenant, run_id)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS sessions(
  tenant TEXT NOT NULL,
  session_id TEXT NOT NULL,
  turns INTEGER NOT NULL,
  last_turn TEXT NOT NULL,
  row_crc INTEGER,
  PRIMARY KEY(tenant, session_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sessions_by_last_turn ON sessions(tenant, last_turn);
CREATE TABLE IF NOT EXISTS tenants(tenant TEXT PRIMARY KEY, settings TEXT NOT NULL, row_crc INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS grants(
  hash TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  tenant TEXT NOT NULL,
  scopes TEXT NOT NULL,
  credential TEXT NOT NULL,
  resource TEXT NOT NULL,
  made_ms REAL NOT NULL,
  used_ms REAL,
  ends_ms REAL NOT NULL, -- Infinity where it does not end by itself
  csrf TEXT,
  row_crc INTEGER
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS grants_by_tenant ON grants(tenant, ends_ms);
CREATE TABLE IF NOT EXISTS allowed(
  tenant TEXT NOT NULL,
  session_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  root_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  approval_id TEXT NOT NULL,
  at TEXT NOT NULL,
  row_crc INTEGER,
  PRIMARY KEY(tenant, session_id, tool)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS blob_refs(
  tenant TEXT NOT NULL,
  ref TEXT NOT NULL,
  root_id TEXT NOT NULL,
  media_type TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  row_crc INTEGER,
  PRIMARY KEY(tenant, ref, root_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS blob_refs_by_root ON blob_refs(tenant, root_id);

-- The table of the public contract: the full view, core types, over hot rows and segments alike.
CREATE VIEW IF NOT EXISTS agent_run_events AS
WITH core(type) AS (VALUES ('reasoning.delta'),('text.delta'),('tool.start'),('tool.end'),
  ('step.boundary'),('child.spawn'),('plan.proposal'),('run.lifecycle')),
-- The texts of each record, as an array.
records(texts) AS (
  SELECT record.value FROM hot, json_each('[["' || replace(replace(replace(replace(hot.body,
    '\\', '\\\\'), '"', '\\"'), char(10), '","'), char(30), '"],["') || '"]]') AS record
),
placed AS (
  SELECT json_extract(texts, '$[0]') AS id, json_extract(texts, '$[3]') AS tenant,
    json_extract(place.value, '$[0]') AS run_id, json_extract(texts, '$[4]') AS by_run,
    json_extract(place.value, '$[4]') AS seq, json_extract(texts, '$[2]') AS type,
    json_extract(texts, '$[1]') AS ts, json_extract(texts, '$[5]') AS payload
  FROM records, json_each(json_extract(texts, '$[7]')) AS place WHERE json_extract(place.value, '$[3]') > 0
  UNION ALL
  SELECT json_extract(event.value, '$.id'), segments.tenant, segments.log,
    coalesce(json_extract(event.value, '$.child_id'), segments.log),
    json_extract(event.value, '$.seq'), json_extract(event.value, '$.type'),
    json_extract(event.value, '$.ts'), json_extract(event.value, '$.payload')
  FROM segments, json_each(CAST(segments.body AS TEXT)) AS event WHERE segments.view = 'full'
)
SELECT placed.id AS id, placed.run_id AS run_id, placed.tenant AS koder_user_id,
  nullif(placed.by_run, placed.run_id) AS child_id, placed.seq AS seq, placed.type AS type,
  placed.ts AS ts, placed.payload AS payload
FROM placed JOIN core ON core.type = placed.type;
`;

/** What a file of the format before lacks, in this order around the tables that it may lack. */
export const upgrade = {
  before: (tables: readonly string[]): string =>
    coveredTables
      .filter((table) => tables.includes(table))
      .map((table) => `ALTER TABLE ${table} ADD COLUMN row_crc INTEGER`)
      .join(";"),
  // Checksums of what is there now, damaged or not: nobody can tell any more.
  after: `
    INSERT INTO sessions(tenant, session_id, turns, last_turn)
      SELECT tenant, session_id, count(*), max(run_id) FROM runs INDEXED BY runs_by_session
      WHERE parent_id IS NULL AND session_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM sessions)
      GROUP BY tenant, session_id;
    ${coveredTables.map(settingFirst).join(";")};
    UPDATE meta SET ${setting("meta", { value: `'${formatVersion}'` })} WHERE name = 'format'`,
} as const;

/** Of a run that has just been created. */
const neverEnded = { state: "NULL", ended_ms: "NULL", full_gone: "0" };
/** What `keepSnapshot` is given. */
const snapshotOf = { log: "?5", tenant: "?4", view: "?1", pos: "?2", transcript: "?3" };
/** The last turn of a session without one of its turns. */
const turnBefore = `coalesce((
      SELECT run_id FROM runs INDEXED BY runs_by_session WHERE tenant = sessions.tenant
      AND session_id = sessions.session_id AND parent_id IS NULL AND run_id <> ?2 ORDER BY run_id DESC LIMIT 1), '')`;

/** Everything the writer thread can be told to do, by name. */
export const writes = {
  addRun: adding(
    "INSERT",
    "runs",
    ["tenant", "run_id", "root_id", "parent_id", "session_id", "agent", "made_under", "record"],
    neverEnded,
  ),
  // A trigger would do it too, and make every run dearer than this does.
  addTurn: `${adding("INSERT", "sessions", ["tenant", "session_id", "last_turn"], { turns: "1" })} ON CONFLICT DO UPDATE SET ${setting(
    "sessions",
    { turns: "sessions.turns + 1", last_turn: "max(sessions.last_turn, excluded.last_turn)" },
  )}`,
  endRun: `UPDATE runs SET ${setting("runs", { state: "?1", ended_ms: "?2" })} WHERE tenant = ?3 AND run_id = ?4`,
  addHot: "INSERT INTO hot(row, body, crc) VALUES (?,?,?)",
  dropHot: "DELETE FROM hot WHERE row IN (SELECT value FROM json_each(?))",
  keepHead: adding("INSERT OR REPLACE", "heads", ["tenant", "log", "as_of", "head"]),
  addSegment: adding("INSERT", "segments", [
    "tenant",
    "log",
    "view",
    "first_pos",
    "last_pos",
    "last_seq",
    "bytes",
    "marks",
    "body",
    "crc",
  ]),
  dropSegment: "DELETE FROM segments WHERE segment = ?",
  addFeed: adding("INSERT", "feed", ["tenant", "log", "pos", "seq", "id", "ts", "type", "by_run", "payload"]),
  blankFeedOf: `UPDATE feed INDEXED BY feed_by_run SET ${setting("feed", { type: "'x.runwire.erased'", payload: "'{}'" })}
    WHERE tenant = ? AND by_run = ?`,
  // The last entry stays, whatever its age: its number is the feed's. And what goes is a beginning: a clock that was
  // set back makes later entries older, and without them there would be a hole.
  pruneFeed: `DELETE FROM feed WHERE tenant = ?1 AND log = ?2 AND pos < ?3 AND (pos <= ?4 OR pos < coalesce((
      SELECT pos FROM feed WHERE tenant = ?1 AND log = ?2 AND ts >= ?5 ORDER BY pos LIMIT 1), ?3))`,
  // A run that was erased, or lost the view, while its transcript was folded keeps none. Nor does one that has another
  // further on: each must have grown by its size since the one before, which says nothing of those behind it.
  keepSnapshot: `INSERT INTO snapshots(tenant, log, view, pos, transcript, row_crc)
    SELECT tenant, run_id, ?1, ?2, ?3, ${crcSql("snapshots", snapshotOf)} FROM runs
    WHERE tenant = ?4 AND run_id = ?5 AND (full_gone = 0 OR ?1 <> 'full') AND NOT EXISTS (
      SELECT 1 FROM snapshots WHERE tenant = ?4 AND log = ?5 AND view = ?1 AND pos >= ?2)`,
  dropFull: `UPDATE runs INDEXED BY runs_by_root SET ${setting("runs", { full_gone: "1" })} WHERE tenant = ? AND root_id = ?`,
  dropFullSegments: "DELETE FROM segments WHERE tenant = ? AND log = ? AND view = 'full'",
  dropFullSnapshots: "DELETE FROM snapshots WHERE tenant = ? AND log = ? AND view = 'full'",
  // Of a run that is a turn. The last one leaves its session without any, which then goes too.
  dropTurn: `UPDATE sessions SET ${setting("sessions", { turns: "turns - 1", last_turn: turnBefore })}
    WHERE tenant = ?1 AND session_id = (
      SELECT session_id FROM runs WHERE tenant = ?1 AND run_id = ?2 AND parent_id IS NULL)`,
  dropEmptySession: "DELETE FROM sessions WHERE tenant = ? AND last_turn = ''",
  dropRun: "DELETE FROM runs WHERE tenant = ? AND run_id = ?",
  dropHead: "DELETE FROM heads WHERE tenant = ? AND log = ?",
  dropSegments: "DELETE FROM segments WHERE tenant = ? AND log = ?",
  dropSnapshots: "DELETE FROM snapshots WHERE tenant = ? AND log = ?",
  addBlobRef: adding("INSERT OR IGNORE", "blob_refs", ["tenant", "ref", "root_id", "media_type", "bytes"]),
  dropBlobRefs: "DELETE FROM blob_refs WHERE tenant = ? AND root_id = ?",
  addTombstone: "INSERT OR REPLACE INTO tombstones(tenant, run_id, erased_at) VALUES (?,?,?)",
  dropTenant: "DELETE FROM tenants WHERE tenant = ?",
  setTenant: adding("INSERT OR REPLACE", "tenants", ["tenant", "settings"]),
  setMeta: adding("INSERT OR REPLACE", "meta", ["name", "value"]),
  // The first word stands: whoever asks why a tool ran is led to it.
  allow: adding("INSERT OR IGNORE", "allowed", [
    "tenant",
    "session_id",
    "tool",
    "root_id",
    "run_id",
    "approval_id",
    "at",
  ]),
  disallow: "DELETE FROM allowed WHERE tenant = ? AND session_id = ? AND tool = ?",
  // What was allowed for the tenant outlives the run in which it was said.
  disallowBy: "DELETE FROM allowed WHERE tenant = ? AND root_id = ? AND session_id <> ''",
  putGrant: adding("INSERT OR REPLACE", "grants", [
    "hash",
    "kind",
    "tenant",
    "scopes",
    "credential",
    "resource",
    "made_ms",
    "used_ms",
    "ends_ms",
    "csrf",
  ]),
  useGrant: `UPDATE grants SET ${setting("grants", { used_ms: "?1" })} WHERE hash = ?2 AND used_ms IS NULL`,
  dropGrant: "DELETE FROM grants WHERE hash = ?",
  pruneGrants: "DELETE FROM grants WHERE ends_ms <= ?",
} as const;

export type Write = readonly [keyof typeof writes, ...(string | number | null | Uint8Array)[]];
