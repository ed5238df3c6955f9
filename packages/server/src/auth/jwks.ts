// The keys that an issuer publishes. They are fetched when first needed, kept for ten minutes, and fetched again
// early where a token names a key that is not among them: that is how issuers change keys. Forged tokens name such
// keys too, so a successful fetch is followed by a cooldown, and a failed one by a pause.

import { RunwireError } from "@runwire/protocol";
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type JSONWebKeySet,
  type JWTVerifyGetKey,
} from "jose";
import type { Clock } from "../clock.js";

export const publishedAlgorithms = ["RS256", "PS256", "ES256", "EdDSA"];

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

/** How many keys are published, and how many of them tokens can be signed with. Throws where there is no telling. */
export async function countKeys(address: string): Promise<{ readonly all: number; readonly usable: number }> {
  const signal = AbortSignal.timeout(timeoutMs);
  const answer = await fetch(trustedUrl(address), { redirect: "manual", signal }).catch((error: unknown) => {
    // What fetch says of itself is only that it failed.
    throw (error as Error).cause ?? error;
  });
  if (answer.status !== 200) throw new Error(`it answers ${answer.status}`);
  const { keys } = (await answer.json()) as JSONWebKeySet;
  if (!Array.isArray(keys)) throw new Error("it is no set of keys");
  const isUsable = await Promise.all(
    keys.map(async (key) => {
      // Each alone, and without its name: the question is whether any token could be meant for it.
      const resolve = createLocalJWKSet({ keys: [key] });
      const tried = await Promise.allSettled(publishedAlgorithms.map((alg) => resolve({ alg })));
      return tried.some(({ status }) => status === "fulfilled");
    }),
  );
  return { all: keys.length, usable: isUsable.filter(Boolean).length };
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
