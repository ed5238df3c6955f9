// Who may come in: the auth mode against the address, and what that mode needs.

import { join } from "node:path";
import { messageOf } from "@runwire/protocol";
import { checkSettings, type KeyRecord, readKeys, systemClock } from "@runwire/server/operate";
import { type Check, daysUntil, doubtful, type Facts, type Finding, right, wrong } from "./finding.js";

const keySoonMs = 14 * 86_400_000;
/** More than these are counted, not named. */
const namedMax = 5;
const makeKey = "runwire keys create --tenant NAME --scopes read,write";

export const access: Check = async (facts) => {
  const { auth } = facts.settings;
  if (auth === "keys") return [...judgeTransport(facts), ...keys(facts)];
  if (auth === "jwt") return [...judgeTransport(facts), ...(await tokens(facts))];
  return [open(facts)];
};

function open({ settings }: Facts): Finding {
  const { host } = settings;
  const todo = "set --auth keys or --auth jwt, or --host 127.0.0.1";
  if (!isLoopback(host)) return wrong("access", `open to everyone who reaches ${host}`, todo);
  try {
    // A server takes fewer names than there are; its files are looked at elsewhere.
    checkSettings({ ...settings, tlsCert: null, tlsKey: null });
  } catch (error) {
    return wrong("access", `a server does not start so: ${messageOf(error)}`, todo);
  }
  return right("access", `open: whoever is on this machine may do everything, through ${host} only`);
}

function judgeTransport({ settings }: Facts): readonly Finding[] {
  const { tlsCert } = settings;
  if (isLoopback(settings.host) || tlsCert !== null) return [];
  const says = `keys and tokens reach ${settings.host} unencrypted`;
  return [doubtful("access", says, "set --tls-cert and --tls-key, or let a proxy in front speak TLS")];
}

function keys({ settings, nowMs }: Facts): readonly Finding[] {
  const path = join(settings.dataFolder, "keys.json");
  try {
    return judgeKeys(readKeys(path), nowMs);
  } catch (error) {
    const todo = `mend it, or move it away and make new keys: ${makeKey}`;
    return [wrong("keys", `${messageOf(error)}; a server does not start with it`, todo)];
  }
}

export function judgeKeys(all: readonly KeyRecord[], nowMs: number): readonly Finding[] {
  const endOf = ({ expires_at }: KeyRecord): number =>
    expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(expires_at);
  const active = all.filter((key) => key.revoked_at === null && endOf(key) > nowMs);
  if (active.length === 0) return [wrong("keys", "no key is good: nobody can come in", makeKey)];
  const soon = active.filter((key) => endOf(key) - nowMs <= keySoonMs);
  const findings = soon.slice(0, namedMax).map((key) => {
    const says = `key ${key.id} of tenant ${key.tenant} ends in ${daysUntil(endOf(key), nowMs)}`;
    const todo = `runwire keys create --tenant ${key.tenant} --scopes ${key.scopes.join(",")}, and replace it`;
    return doubtful("keys", says, todo);
  });
  if (soon.length > namedMax) {
    const says = `${soon.length - namedMax} more keys end within 14 days`;
    findings.push(doubtful("keys", says, "runwire keys list"));
  }
  return [right("keys", `${active.length} of ${all.length} keys are good`), ...findings];
}

async function tokens({ settings }: Facts): Promise<readonly Finding[]> {
  const { jwtSecret, jwksUrl, jwtIssuer, jwtAudience } = settings;
  const unset = Object.entries({ "--jwt-issuer": jwtIssuer, "--jwt-audience": jwtAudience })
    .filter(([, value]) => value === null || value === "")
    .map(([flag]) => wrong("tokens", `${flag} is not set`, `set it: tokens made for others must be refused`));
  if (unset.length > 0) return unset;
  const { jwtCredentials } = await import("@runwire/server");
  try {
    jwtCredentials({
      secret: jwtSecret ?? undefined,
      jwksUrl: jwksUrl ?? undefined,
      issuer: jwtIssuer ?? "",
      audience: jwtAudience ?? "",
      clock: systemClock,
    }).close();
  } catch (error) {
    return [wrong("tokens", messageOf(error), "set RUNWIRE_JWT_SECRET or --jwks-url")];
  }
  const of = `tokens of ${jwtIssuer} for ${jwtAudience}`;
  return [jwksUrl === null ? right("tokens", `${of}, signed with a secret`) : await published(of, jwksUrl)];
}

async function published(of: string, jwksUrl: string): Promise<Finding> {
  try {
    const { countKeys } = await import("@runwire/server");
    const { all, usable } = await countKeys(jwksUrl);
    if (usable > 0) return right("tokens", `${of}, signed with one of ${usable} keys at ${jwksUrl}`);
    const says = `none of the ${all} keys at ${jwksUrl} can be used`;
    return wrong("tokens", says, "publish a public RSA, P-256 or Ed25519 key whose `use` is `sig`");
  } catch (error) {
    const todo = "check --jwks-url, and that this machine may reach it";
    return wrong("tokens", `the keys at ${jwksUrl} cannot be fetched (${messageOf(error)})`, todo);
  }
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}
