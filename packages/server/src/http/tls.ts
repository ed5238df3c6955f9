import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import type { Settings } from "../settings.js";

export interface Tls {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** When the certificate ends. */
  readonly endsMs: number;
}

/** Throws an Error with one line that names the file. */
export function readTls({ tlsCert, tlsKey }: Pick<Settings, "tlsCert" | "tlsKey">): Tls | null {
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
  // Tried out before anything else begins: what the listener would say names no file.
  usable(`${tlsCert} is no certificate in PEM`, { cert });
  usable(`${tlsKey} is no key in PEM without a password`, { key });
  usable(`${tlsCert} and ${tlsKey} do not belong together`, { cert, key });
  return { cert, key, endsMs: Date.parse(new X509Certificate(cert).validTo) };
}

function usable(otherwise: string, files: Partial<Pick<Tls, "cert" | "key">>): void {
  try {
    createSecureContext(files);
  } catch (cause) {
    throw new Error(`${otherwise} (${(cause as Error).message}); see --tls-cert and --tls-key`, { cause });
  }
}
