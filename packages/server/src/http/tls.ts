import { readFileSync } from "node:fs";
import type { Settings } from "../settings.js";

export interface Tls {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** Throws an Error with one line that names the file. */
export function readTls({ tlsCert, tlsKey }: Settings): Tls | null {
  if (tlsCert === null || tlsKey === null) return null;
  const [cert, key] = [tlsCert, tlsKey].map((path) => {
    try {
      return readFileSync(path);
    } catch (cause) {
      throw new Error(`${path} cannot be read (${(cause as Error).message}); see --tls-cert and --tls-key`, {
        cause,
      });
    }
  }) as [Buffer, Buffer];
  return { cert, key };
}
