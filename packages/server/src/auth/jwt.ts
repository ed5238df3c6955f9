// Credentials that are JSON Web Tokens of another party, signed with a shared secret or with keys that it publishes.
// Which of the two is the operator's choice and never the token's: each allows its own algorithms only, and whatever
// key a token's header carries or points to is not looked at.

import { createHash, scryptSync } from "node:crypto";
import { RunwireError } from "@runwire/protocol";
import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from "jose";
import type { Clock } from "../clock.js";
import { type Caller, type Credentials, isScope, isTenant, type Scope, tokenCharsMax } from "./caller.js";
import { publishedAlgorithms, remoteKeys } from "./jwks.js";

export interface JwtOptions {
  /** Exactly one of the two: a secret of at least 32 bytes (HS256), or where the issuer publishes its keys. */
  readonly secret?: string | undefined;
  readonly jwksUrl?: string | undefined;
  readonly issuer: string;
  readonly audience: string;
  /** The claim that names the tenant. */
  readonly tenantClaim?: string | undefined;
  readonly clock: Clock;
  /** How soon an unknown key id may make the server ask for the keys again. */
  readonly cooldownMs?: number | undefined;
}

const secretBytesMin = 32;
const toleranceS = 5;
const cachedMax = 10_000;
const cachedMs = 5 * 60 * 1000;
/** Issuers may write any number, but not every one is a date. */
const lastDateMs = 8.64e15;

const secretAlgorithms = ["HS256"];

/** Throws one line where the options cannot be right. */
export function jwtCredentials(options: JwtOptions): Credentials {
  const { issuer, audience, tenantClaim = "tenant", clock } = options;
  if (issuer === "" || audience === "") throw new Error("tokens need an issuer and an audience");
  const key = keyOf(options);
  const named = `jwt:${trustOf({ ...options, tenantClaim })}-`;
  const algorithms = options.secret === undefined ? publishedAlgorithms : secretAlgorithms;
  // By hash, so that a dump of the memory holds fewer tokens; in the order they were verified.
  const cache = new Map<string, { readonly caller: Caller; readonly untilMs: number }>();

  async function verify(token: string, hash: string): Promise<Caller> {
    const { payload } = await jwtVerify(token, key, {
      algorithms,
      issuer,
      audience,
      requiredClaims: ["exp"],
      clockTolerance: toleranceS,
      currentDate: new Date(clock.now()),
    });
    const tenant = Object.hasOwn(payload, tenantClaim) ? payload[tenantClaim] : undefined;
    if (!isTenant(tenant)) throw new Error("the token names no tenant");
    return {
      tenant,
      scopes: scopesOf(payload),
      credential: named + hash.slice(0, 16),
      endsMs: Math.min((Number(payload.exp) + toleranceS) * 1000, lastDateMs),
    };
  }

  return {
    async check(token) {
      if (!isCompact(token)) throw new RunwireError("KAI-AUTH-TOKEN-0002");
      const hash = createHash("sha256").update(token).digest("hex");
      const cached = cache.get(hash);
      if (cached !== undefined && clock.now() < cached.untilMs) return cached.caller;
      cache.delete(hash);
      const caller = await verify(token, hash).catch((cause: unknown) => {
        throw refusalOf(cause);
      });
      const [oldest] = cache.keys();
      if (cache.size >= cachedMax && oldest !== undefined) cache.delete(oldest);
      cache.set(hash, { caller, untilMs: Math.min(caller.endsMs, clock.now() + cachedMs) });
      return caller;
    },
    // Nobody tells us of a token: it is good until it ends, so issuers should give short ones. But what other
    // credentials let in, before the server was told to trust these tokens, is over.
    isRevoked: (credential) => !credential.startsWith(named),
    close: () => cache.clear(),
  };
}

function keyOf({ secret, jwksUrl, clock, cooldownMs }: JwtOptions): JWTVerifyGetKey {
  if (secret !== undefined && jwksUrl === undefined) {
    const bytes = new TextEncoder().encode(secret);
    if (bytes.length < secretBytesMin) {
      throw new Error(`the secret that tokens are signed with needs at least ${secretBytesMin} bytes`);
    }
    return async () => bytes;
  }
  if (jwksUrl === undefined || secret !== undefined) {
    throw new Error("tokens are signed with a secret or with published keys: give exactly one of them");
  }
  return remoteKeys(jwksUrl, clock, cooldownMs);
}

/**
 * Whose tokens are trusted, in eight digits: what was let in while a secret or an issuer was another ends with it. Slow
 * to make, because it stands in logs, and a secret may be one that a person thought of.
 */
function trustOf({ secret, jwksUrl, issuer, audience, tenantClaim }: JwtOptions): string {
  const said = JSON.stringify([issuer, audience, tenantClaim]);
  return scryptSync(secret ?? jwksUrl ?? "", said, 4, { cost: 1024 }).toString("hex");
}

/**
 * Three parts in the one way that base64url writes them. Decoders let loose bits and white space pass, and then one
 * token has many spellings.
 */
function isCompact(token: string): boolean {
  if (token.length > tokenCharsMax) return false;
  const parts = token.split(".");
  const isCanonical = (part: string): boolean =>
    Buffer.from(part, "base64url").toString("base64url") === part;
  return parts.length === 3 && parts.every(isCanonical);
}

/** All that is signed counts: `scope` as OAuth writes it, `scp` and `scopes` as others do. */
function scopesOf(payload: JWTPayload): ReadonlySet<Scope> {
  const words = [payload.scope, payload.scopes, payload.scp].flatMap((claim) =>
    typeof claim === "string" ? claim.split(" ") : Array.isArray(claim) ? claim : [],
  );
  return new Set(
    words.map((word) => (typeof word === "string" ? word.replace(/^runwire:/, "") : word)).filter(isScope),
  );
}

/** What was wrong is the cause, for the operator's eyes; the answer is the same for all. */
function refusalOf(cause: unknown): RunwireError {
  if (cause instanceof RunwireError) return cause;
  // Told only of tokens whose signature is right: it is checked first.
  const code = cause instanceof errors.JWTExpired ? "KAI-AUTH-TOKEN-0003" : "KAI-AUTH-TOKEN-0002";
  return new RunwireError(code, undefined, { cause });
}
