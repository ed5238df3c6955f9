// Before anything is looked at: which server is called, and by whose page. A page of another site, or a name that was
// made to point here, gets nothing.

import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import { RunwireError } from "@runwire/protocol";
import type { Settings } from "../settings.js";

export interface Front {
  /** Throws 403 where this server is not meant, or a foreign page asks. */
  check(req: IncomingMessage): void;
  /** What goes out with every answer, names and values in turn; also to what was no request, and has no headers. */
  headers(req: Pick<IncomingMessage, "socket" | "headers">): readonly string[];
  /** The answer to a browser that asks whether it may ask. */
  preflight(methods: readonly string[]): { readonly [name: string]: string };
}

const loopbackNames = new Set(["127.0.0.1", "localhost", "[::1]"]);
const answerHeaders = "Content-Range, ETag, Idempotency-Replayed, Location, Retry-After, Runwire-Request-Id";
/** Request headers that every route knows. */
const everyRoutes = ["Authorization", "Content-Type", "X-Request-Id"];
const preflightSeconds = 600;

/** A browser that is shown one of our answers as a page runs, embeds and tells nothing. */
const guards = [
  ["X-Content-Type-Options", "nosniff"],
  ["Referrer-Policy", "no-referrer"],
  ["Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"],
  ["Cross-Origin-Resource-Policy", "same-origin"],
].flat();
const tlsGuards = [...guards, "Strict-Transport-Security", "max-age=31536000"];

/** `understood` are the request headers that some route knows. */
export function front(
  { auth, origins }: Pick<Settings, "auth" | "origins">,
  understood: readonly string[],
): Front {
  const allowed = new Set(origins);
  const requestHeaders = [...new Set([...everyRoutes, ...understood])].toSorted().join(", ");
  return {
    check(req) {
      const host = hostOf(req);
      if (countOf(req.rawHeaders, "host") > 1 || host === "" || (req.headers.host ?? host) !== host)
        throw new RunwireError("KAI-REQUEST-HOST-0001", "one Host is needed");
      // With credentials a foreign name is harmless: its pages have none of ours.
      if (auth === "open" && !loopbackNames.has(hostName(host)))
        throw new RunwireError("KAI-REQUEST-HOST-0001", "unknown Host");
      const { origin } = req.headers;
      if (origin !== undefined && !isOwnPage(req) && !allowed.has(origin)) {
        throw new RunwireError(
          "KAI-REQUEST-HOST-0001",
          `pages of ${host} may call, and those of --origins; not pages of another origin`,
        );
      }
      // An image or a script of another page names no origin, but the browser says where it comes from.
      if (auth === "open" && origin === undefined && isEmbedded(req))
        throw new RunwireError("KAI-REQUEST-HOST-0001", "this server is not for pages of another site");
    },
    headers(req) {
      const base = isTls(req) ? tlsGuards : guards;
      const { origin } = req.headers;
      if (allowed.size === 0) return base;
      if (origin === undefined || !allowed.has(origin)) return [...base, "Vary", "Origin"];
      return [
        ...[...base, "Vary", "Origin", "Access-Control-Allow-Origin", origin],
        ...["Access-Control-Expose-Headers", answerHeaders],
      ];
    },
    preflight: (methods) => ({
      Allow: methods.join(", "),
      "Access-Control-Allow-Methods": methods.join(", "),
      "Access-Control-Allow-Headers": requestHeaders,
      "Access-Control-Max-Age": String(preflightSeconds),
    }),
  };
}

/** Whether the page that asks came from this very server. */
export function isOwnPage(req: IncomingMessage): boolean {
  const { origin } = req.headers;
  const host = hostOf(req);
  return origin === `http://${host}` || origin === `https://${host}`;
}

/** Whether another site's page asks for this as a part of itself; a link that is followed is another thing. */
function isEmbedded({ headers }: IncomingMessage): boolean {
  const site = headers["sec-fetch-site"];
  if (site === undefined || site === "same-origin" || site === "none") return false;
  return headers["sec-fetch-mode"] !== "navigate" || headers["sec-fetch-dest"] !== "document";
}

export function isTls({ socket }: Pick<IncomingMessage, "socket">): boolean {
  return (socket as Partial<TLSSocket>).encrypted === true;
}

/** HTTP/2 names the host in a field of its own. */
function hostOf({ headers }: IncomingMessage): string {
  const authority = headers[":authority"];
  return (typeof authority === "string" ? authority : headers.host) ?? "";
}

/** Node keeps the first of several; a front that keeps another would see another host. */
export function countOf(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const header = rawHeaders[i] as string;
    if (header.length === name.length && header.toLowerCase() === name) count += 1;
  }
  return count;
}

function hostName(host: string): string {
  return host.replace(/:[0-9]{1,5}$/, "").toLowerCase();
}
