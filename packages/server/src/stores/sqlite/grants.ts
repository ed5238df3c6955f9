// Tickets and sessions in the file. They are looked up by the hash of a secret that only their owner has.

import type { Clock } from "../../clock.js";
import type { Grant, Grants } from "../../store.js";
import { damageOf } from "./checksum.js";
import type { Reader } from "./reader.js";
import type { Write } from "./schema.js";

interface GrantRow {
  readonly hash: string;
  readonly kind: Grant["kind"];
  readonly tenant: string;
  readonly scopes: string;
  readonly credential: string;
  readonly resource: string;
  readonly made_ms: number;
  readonly used_ms: number | null;
  readonly ends_ms: number;
  readonly csrf: string | null;
}

export function keptGrants(
  reader: Reader,
  write: (list: readonly Write[]) => Promise<void>,
  clock: Clock,
): Grants {
  const one = reader.prepare(`SELECT *, ${damageOf("grants")} AS damage FROM grants WHERE hash = ?`);
  const good = reader.prepare("SELECT count(*) AS count FROM grants WHERE tenant = ? AND ends_ms > ?");
  return {
    put({ hash, kind, tenant, scopes, credential, resource, madeMs, usedMs, endsMs, csrf }) {
      const [scopesText, resourceText] = [JSON.stringify(scopes), JSON.stringify(resource ?? null)];
      return write([
        [
          ...(["putGrant", hash, kind, tenant, scopesText, credential, resourceText] as const),
          ...[madeMs, usedMs, endsMs, csrf],
        ],
      ]);
    },
    async get(hash) {
      // Whether it is over is asked of a row that is known to be whole.
      const row = one.get(hash) as GrantRow | undefined;
      return row === undefined || row.ends_ms <= clock.now() ? undefined : grantOf(row);
    },
    async count(tenant) {
      return (good.get(tenant, clock.now()) as { readonly count: number }).count;
    },
    use: (hash, atMs) => write([["useGrant", atMs, hash]]),
    drop: (hash) => write([["dropGrant", hash]]),
  };
}

function grantOf(row: GrantRow): Grant {
  const { hash, kind, tenant, credential, csrf, made_ms, used_ms, ends_ms } = row;
  return {
    hash,
    kind,
    tenant,
    scopes: JSON.parse(row.scopes) as readonly string[],
    credential,
    resource: JSON.parse(row.resource) as unknown,
    madeMs: made_ms,
    usedMs: used_ms,
    endsMs: ends_ms,
    csrf,
  };
}
