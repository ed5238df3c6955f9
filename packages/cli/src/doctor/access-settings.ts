import type { Settings } from "@runwire/server";

interface AccessSettings {
  readonly auth: string;
  readonly jwtSecret: string | null;
  readonly jwksUrl: string | null;
  readonly jwtIssuer: string | null;
  readonly jwtAudience: string | null;
  readonly tlsCert: string | null;
  readonly tlsKey: string | null;
}

const none: AccessSettings = {
  auth: "open",
  jwtSecret: null,
  jwksUrl: null,
  jwtIssuer: null,
  jwtAudience: null,
  tlsCert: null,
  tlsKey: null,
};

/** A server that has no such settings is open and speaks no TLS. */
export function accessOf(settings: Settings): AccessSettings {
  return { ...none, ...settings };
}
