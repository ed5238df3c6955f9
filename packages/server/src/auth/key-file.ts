// The file of API keys, in the data folder: commands change it, servers only read it. It holds no secret, but who
// could write it could let themselves in, so it is its owner's alone.

import {
  closeSync,
  fchownSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { makeFolder } from "../folder.js";
import { sqliteBusy } from "../stores/sqlite/open.js";
import { isScope, isTenant, type Scope } from "./caller.js";

/** One key as it is kept, in the file's own spelling. */
export interface KeyRecord {
  readonly id: string;
  readonly tenant: string;
  readonly scopes: readonly Scope[];
  readonly name: string;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  /** SHA-256 of the whole key, hex. */
  readonly hash: string;
}

const formatVersion = 1;
const lockWaitMs = 10_000;

/** No file means no keys. Throws one line that names what is wrong with it. */
export function readKeys(path: string): readonly KeyRecord[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw new Error(`${path} cannot be read (${(cause as Error).message})`, { cause });
  }
  return parseKeys(path, text);
}

/**
 * Reads, changes and replaces the file, unless `change` gives back what it got. Other commands' changes wait for this
 * one, and none is lost.
 */
export function changeKeys(
  path: string,
  change: (keys: readonly KeyRecord[]) => readonly KeyRecord[],
): readonly KeyRecord[] {
  const unlock = lock(path);
  try {
    const before = readKeys(path);
    const keys = change(before);
    if (keys !== before) replace(path, `${JSON.stringify({ format: formatVersion, keys }, null, 2)}\n`);
    return keys;
  } finally {
    unlock();
  }
}

function parseKeys(path: string, text: string): readonly KeyRecord[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    // What the parser says may quote the file.
    throw new Error(`${path} is not JSON`, { cause });
  }
  const { format, keys } = (value ?? {}) as { readonly format?: unknown; readonly keys?: unknown };
  if (format !== formatVersion || !Array.isArray(keys)) {
    throw new Error(`${path} is not a file of keys of format ${formatVersion}`);
  }
  const ids = new Set<string>();
  return keys.map((key: unknown, index) => {
    if (!isKeyRecord(key)) throw new Error(`${path}: key ${index + 1} is malformed`);
    if (ids.has(key.id)) throw new Error(`${path}: there are two keys ${key.id}`);
    ids.add(key.id);
    return key;
  });
}

function isKeyRecord(value: unknown): value is KeyRecord {
  if (typeof value !== "object" || value === null) return false;
  const key = value as { readonly [member in keyof KeyRecord]?: unknown };
  return (
    isKeyId(key.id) &&
    isTenant(key.tenant) &&
    Array.isArray(key.scopes) &&
    key.scopes.every(isScope) &&
    typeof key.name === "string" &&
    isTime(key.created_at) &&
    (key.expires_at === null || isTime(key.expires_at)) &&
    (key.revoked_at === null || isTime(key.revoked_at)) &&
    typeof key.hash === "string" &&
    /^[0-9a-f]{64}$/.test(key.hash)
  );
}

function isKeyId(value: unknown): value is string {
  return typeof value === "string" && /^[a-z2-7]{12}$/.test(value);
}

function isTime(value: unknown): boolean {
  return typeof value === "string" && !Number.isNaN(Date.parse(value));
}

/** SQLite's own lock, as for the data: the system frees it when a command dies, so none is ever stale. */
function lock(path: string): () => void {
  const lockPath = `${path}.lock`;
  try {
    makeFolder(dirname(path));
    // Made here first, so that it gets its owner and mode.
    const file = openSync(lockPath, "a", 0o600);
    try {
      giveToOwner(file, path);
    } finally {
      closeSync(file);
    }
  } catch (cause) {
    const todo = "do this as the user that runs the server, or give another data folder";
    throw new Error(`${path} cannot be changed (${(cause as Error).message}); ${todo}`, { cause });
  }
  const db = new DatabaseSync(lockPath, { timeout: lockWaitMs });
  try {
    db.exec("BEGIN EXCLUSIVE");
  } catch (cause) {
    db.close();
    const { errcode, message } = cause as { errcode?: number; message: string };
    const why =
      errcode === sqliteBusy ? "is being changed by another command" : `cannot be changed (${message})`;
    throw new Error(`${path} ${why}`, { cause });
  }
  return () => db.close();
}

/** A crash at any point leaves the old file or the new one, whole. */
function replace(path: string, text: string): void {
  const next = `${path}.next`;
  // One that a crash left behind; the lock is ours.
  rmSync(next, { force: true });
  const file = openSync(next, "wx", 0o600);
  try {
    giveToOwner(file, path);
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(next, path);
  const folder = openSync(dirname(path), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** A command run by root must not lock the server out of its own folder. */
function giveToOwner(file: number, path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  fchownSync(file, uid, gid);
}
