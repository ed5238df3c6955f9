// Who is asking. Every request has one caller, made by the credentials of the server's auth mode; routes see the
// caller and never the token.

export const scopes = ["read", "write", "control", "approve", "admin"] as const;
export type Scope = (typeof scopes)[number];

/** Who is asking, as far as the gate is concerned. */
export interface Caller {
  readonly tenant: string;
  readonly scopes: ReadonlySet<Scope>;
  /** What it was let in by, without the secret: `open`, `key:<id>`, `jwt:<whose tokens>-<sha256 of this, 16 hex>`. */
  readonly credential: string;
  /** When that ends, in wall-clock ms; Infinity where it does not. */
  readonly endsMs: number;
  /** The only resources it may read, where it came with a stream ticket: `run:<id>`, `runs`, … */
  readonly only?: ReadonlySet<string>;
  /** The console session it came with, by the hash of its secret: signing out ends what that opened. */
  readonly session?: string;
}

/** One way of checking a bearer token. One implementation per auth mode. */
export interface Credentials {
  /** Throws a RunwireError KAI-AUTH-*. */
  check(token: string): Promise<Caller>;
  /** Whether what once was good has been taken back: open streams, tickets and sessions ask again and again. */
  isRevoked(credential: string): boolean;
  close(): void;
}

/** A bearer's, of whatever kind. */
export const tokenCharsMax = 8 * 1024;

/** Names are safe as a folder, a metric label and a part of a URL alike. */
const tenantPattern = /^[a-z0-9][a-z0-9_-]{0,62}$/;

export function isTenant(name: unknown): name is string {
  return typeof name === "string" && tenantPattern.test(name);
}

export function isScope(word: unknown): word is Scope {
  return scopes.some((scope) => scope === word);
}
