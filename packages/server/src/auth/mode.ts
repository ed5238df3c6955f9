// How callers prove who they are, as the settings say.

import { join } from "node:path";
import type { Clock } from "../clock.js";
import type { Report } from "../report.js";
import type { Settings } from "../settings.js";
import type { Credentials } from "./caller.js";
import { jwtCredentials } from "./jwt.js";
import { keyRing } from "./keys.js";

/** Null on an open server. Throws an Error with one line where they cannot be used. */
export function credentialsFor(settings: Settings, clock: Clock, report: Report): Credentials | null {
  const { auth, dataFolder, jwtSecret, jwksUrl, jwtIssuer, jwtAudience, jwtTenantClaim } = settings;
  if (auth === "open") return null;
  if (auth === "keys")
    return keyRing(join(dataFolder, "keys.json"), clock, (problem) => report("warn", problem));
  return jwtCredentials({
    ...(jwtSecret === null ? {} : { secret: jwtSecret }),
    ...(jwksUrl === null ? {} : { jwksUrl }),
    issuer: jwtIssuer ?? "",
    audience: jwtAudience ?? "",
    tenantClaim: jwtTenantClaim,
    clock,
  });
}
