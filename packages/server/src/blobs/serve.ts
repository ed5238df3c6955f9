// A blob over HTTP. It is whatever a producer sent, so a browser must run nothing in it; and it may be erased at any
// moment, so nobody may keep a copy for us.

import type { IncomingMessage } from "node:http";
import { RunwireError } from "@runwire/protocol";
import { isClosed } from "../http/closing.js";
import { give } from "../http/giving.js";
import type { Call, Reply } from "../http/route.js";
import type { CountedBlobs } from "./counted.js";
import type { ByteRange } from "./store.js";

export async function serveBlob(
  blobs: CountedBlobs,
  { req, res, tenant, begin }: Call,
  ref: string,
): Promise<Reply | undefined> {
  // Unknown, erased, malformed, another tenant's: all the same.
  const found = await blobs.find(tenant, ref);
  if (found === undefined) throw new RunwireError("KAI-BLOB-MISSING-0001");
  const { bytes, media_type } = found;
  const headers = { ...inert, ETag: `"${ref}"`, "Accept-Ranges": "bytes" };
  if (isNamed(req.headers["if-none-match"], ref)) {
    begin(304, headers);
    res.end();
    return undefined;
  }
  const range = rangeOf(req, ref, bytes);
  if (range === "none") {
    const error = new RunwireError("KAI-BLOB-RANGE-0001", `it has ${bytes} bytes`);
    return { status: 416, body: error, headers: { "Content-Range": `bytes */${bytes}` } };
  }
  const open = await blobs.open(tenant, ref, range);
  if (open?.bytes !== bytes) {
    open?.body.destroy();
    // Whoever erased the last run that referred to it since it was found has removed it, and nothing is damaged.
    if ((await blobs.find(tenant, ref)) === undefined) throw new RunwireError("KAI-BLOB-MISSING-0001");
    throw new RunwireError("KAI-SERVER-STORE-0003", ref);
  }
  // An answer over HTTP/2 that is over before it begins does not tell those that write to it.
  if (isClosed(res)) {
    open.body.destroy();
    return undefined;
  }
  begin(range === undefined ? 200 : 206, {
    ...headers,
    "Content-Type": servedTypes.has(media_type) ? media_type : "application/octet-stream",
    "Content-Disposition": `attachment; filename="${ref}"`,
    ...lengthOf(range, bytes),
  });
  // Nor does one without a body.
  if (req.method === "HEAD") {
    open.body.destroy();
    res.end();
    return undefined;
  }
  await give(res, open.body);
  return undefined;
}

function lengthOf(range: ByteRange | undefined, bytes: number): { readonly [header: string]: string } {
  if (range === undefined) return { "Content-Length": String(bytes) };
  const { first, last } = range;
  return { "Content-Length": String(last - first + 1), "Content-Range": `bytes ${first}-${last}/${bytes}` };
}

const servedTypes: ReadonlySet<string> = new Set(["text/plain; charset=utf-8", "application/json"]);

const inert = {
  "X-Content-Type-Options": "nosniff",
  "Content-Security-Policy": "sandbox; default-src 'none'",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cache-Control": "no-store",
};

/** Whether a list of entity tags names this blob, weakly or not. */
function isNamed(tags: string | undefined, ref: string): boolean {
  if (tags === undefined) return false;
  return tags.split(",").some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === `"${ref}"`);
}

/**
 * The range that is asked for; undefined where it is the whole blob, "none" where no byte of it is. Several ranges,
 * and what is not a range of bytes, get the whole: a server may ignore them.
 */
function rangeOf({ headers }: IncomingMessage, ref: string, bytes: number): ByteRange | "none" | undefined {
  const { range } = headers;
  const ifRange = headers["if-range"];
  if (range === undefined || (ifRange !== undefined && ifRange !== `"${ref}"`)) return undefined;
  const [, from = "", to = ""] = /^bytes=\s*([0-9]{0,15})-([0-9]{0,15})\s*$/i.exec(range) ?? [];
  if (from === "" && to === "") return undefined;
  if (from === "") {
    const suffix = Math.min(Number(to), bytes);
    return suffix === 0 ? "none" : { first: bytes - suffix, last: bytes - 1 };
  }
  const first = Number(from);
  const last = to === "" ? bytes - 1 : Math.min(Number(to), bytes - 1);
  if (to !== "" && Number(to) < first) return undefined;
  return first >= bytes ? "none" : { first, last };
}
