// The keys that an issuer publishes. They are fetched when first needed, kept for ten minutes, and fetched again
// early where a token names a key that is not among them: that is how issuers change keys. Forged tokens name such
// keys too, so a successful fetch is followed by a cooldown, and a failed one by a pause.

import { RunwireError } from "@runwire/protocol";
import { createRemoteJWKSet, customFetch, errors, type JWTVerifyGetKey } from "jose";
import type { Clock } from "../clock.js";

const cooldownMsDefault = 30_000;
const failurePauseMs = 1000;
const timeoutMs = 5000;
const keptMs = 10 * 60 * 1000;
const pausing = new Error("the keys could not be fetched a moment ago");

/** Throws one line where the address is not one to trust. */
export function remoteKeys(address: string, clock: Clock, cooldownMs = cooldownMsDefault): JWTVerifyGetKey {
  const url = trustedUrl(address);
  let failedMs = Number.NEGATIVE_INFINITY;
  const published = createRemoteJWKSet(url, {
    cooldownDuration: cooldownMs,
    timeoutDuration: timeoutMs,
    cacheMaxAge: keptMs,
    [customFetch]: async (where, options) => {
      if (clock.monotonic() - failedMs < failurePauseMs) throw pausing;
      return fetch(where, options);
    },
  });
  return async (header, token) => {
    try {
      return await published(header, token);
    } catch (cause) {
      if (isAboutToken(cause)) throw cause;
      // Those who met the pause do not make it longer.
      if (cause !== pausing) failedMs = clock.monotonic();
      throw new RunwireError("KAI-AUTH-JWKS-0001", undefined, { cause });
    }
  };
}

/** What the keys were fetched for may be wrong, while they are fine. */
function isAboutToken(error: unknown): boolean {
  return (
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys ||
    error instanceof errors.JOSENotSupported
  );
}

function trustedUrl(address: string): URL {
  let url: URL;
  try {
    url = new URL(address);
  } catch (cause) {
    throw new Error(`${JSON.stringify(address)} is not an address of published keys`, { cause });
  }
  const isLoopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(url.hostname);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isLoopback)) {
    throw new Error(`${url.origin}: keys that are fetched without TLS can be forged; use https`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new Error(`${url.origin}: an address of published keys carries no user or password`);
  }
  return url;
}
