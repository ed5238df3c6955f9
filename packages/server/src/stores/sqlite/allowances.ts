// What people have approved beyond one call. A row is written by the commit that holds the answer.

import type { Allowance } from "../../log/record.js";
import type { Store } from "../../store.js";
import { damageOf } from "./checksum.js";
import type { Reader } from "./reader.js";
import type { Write } from "./schema.js";

type AllowedRow = Omit<Allowance, "session_id"> & { readonly session_id: string };

export function keptAllowances(
  reader: Reader,
  write: (list: readonly Write[]) => Promise<void>,
): Pick<Store, "allowances" | "disallow"> {
  const all = reader.prepare(
    `SELECT tool, session_id, run_id, approval_id, at, ${damageOf("allowed")} AS damage
     FROM allowed WHERE tenant = ? AND session_id IN ('', ?) ORDER BY at, tool`,
  );
  const one = reader.prepare("SELECT 1 FROM allowed WHERE tenant = ? AND session_id = ? AND tool = ?");
  return {
    async allowances(tenant, session_id) {
      const rows = all.all(tenant, session_id ?? "") as unknown as AllowedRow[];
      return rows.map(({ tool, session_id: within, run_id, approval_id, at }) => ({
        ...{ tool, session_id: within === "" ? null : within, run_id, approval_id, at },
      }));
    },
    async disallow(tenant, tool, session_id) {
      const key = [tenant, session_id ?? "", tool] as const;
      if (one.get(...key) === undefined) return false;
      await write([["disallow", ...key]]);
      return true;
    },
  };
}
