import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
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
  try {
    createSecureContext({ cert, key });
  } catch (cause) {
    const why = (cause as Error).message;
    throw new Error(`${tlsCert} and ${tlsKey} cannot be used for TLS (${why})`, { cause });
  }
  return { cert, key };
}
