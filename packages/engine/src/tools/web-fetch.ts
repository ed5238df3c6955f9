// Pages of the public internet. A name is resolved once, here; what it resolved to is checked, and the connection goes
// to exactly those addresses, so that a name server which answers differently the next time is never asked again.
// Each redirection is a request like the first one.

import type { LookupAddress } from "node:dns";
import { lookup as systemLookup } from "node:dns/promises";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { pipeline, type Readable } from "node:stream";
import { TextDecoder } from "node:util";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type { Tool } from "../tool.js";
import { ToolFailure } from "../tool.js";
import { isPublicAddress, isPublicName } from "./address.js";
import { pageOf } from "./html.js";
import { checkedTool } from "./input.js";
import { toolLimits } from "./limits.js";
import { until } from "./until.js";

export interface WebFetchOptions {
  /** Hosts that may be private, as `host` or `host:port`; an IPv6 address is in brackets. */
  readonly allowedHosts?: readonly string[];
  /** All addresses of a name. The system's own resolver if not given. */
  readonly resolve?: (name: string) => Promise<readonly string[]>;
  /** For all of it, redirections and body included. */
  readonly fetchMs?: number;
}

interface Input {
  readonly url: string;
  readonly max_bytes?: number;
}

export function webFetchTool({
  allowedHosts = [],
  resolve = resolveBySystem,
  fetchMs = toolLimits.fetchMs,
}: WebFetchOptions = {}): Tool {
  const allowed = new Set(allowedHosts.map((host) => host.toLowerCase()));
  return checkedTool<Input>({
    name: "web.fetch",
    description: "Get a page or a file of text from the public web. HTML comes as plain text.",
    effect: "read-only",
    sandbox: {
      name: "public-web",
      filesystem: { access: "none" },
      network: {
        access: "public",
        schemes: ["http", "https"],
        // How many, and not which: what is private here is nobody's business who reads along.
        privateHostsAllowed: allowed.size,
        redirectsMax: toolLimits.redirectsMax,
        bytesMax: toolLimits.fetchBytesMax,
        timeoutMs: fetchMs,
      },
      process: { access: "none" },
    },
    input_schema: {
      type: "object",
      required: ["url"],
      additionalProperties: false,
      properties: {
        url: { type: "string", minLength: 1, maxLength: 4096, description: "http or https" },
        max_bytes: { type: "integer", minimum: 1, maximum: toolLimits.fetchBytesMax },
      },
    },
    async run({ url, max_bytes = toolLimits.fetchBytes }, context) {
      const late = AbortSignal.timeout(fetchMs);
      const signal = AbortSignal.any([context.signal, late]);
      try {
        const { response, finalUrl } = await follow(url, signal);
        try {
          return await contentOf(response, finalUrl, max_bytes);
        } finally {
          response.destroy();
        }
      } catch (error) {
        context.signal.throwIfAborted();
        if (late.aborted) throw new ToolFailure("timeout", `It took longer than ${fetchMs} ms.`);
        if (error instanceof ToolFailure) throw error;
        const { code } = error as NodeJS.ErrnoException;
        throw new ToolFailure("unreachable", `The page could not be got (${code ?? "broken"}).`, {
          cause: error,
        });
      }
    },
  });

  async function follow(
    given: string,
    signal: AbortSignal,
  ): Promise<{ response: IncomingMessage; finalUrl: URL }> {
    let url = checkedUrl(given);
    for (let count = 0; count <= toolLimits.redirectsMax; count++) {
      const response = await get(url, await until(signal, addressesOf(url)), signal);
      const { location } = response.headers;
      if (!redirections.has(response.statusCode ?? 0) || location === undefined)
        return { response, finalUrl: url };
      response.destroy();
      url = checkedUrl(location, url);
    }
    throw new ToolFailure("refused", `There are more than ${toolLimits.redirectsMax} redirections.`);
  }

  /** Where to connect to. Throws for a host that is none of the model's business. */
  async function addressesOf(url: URL): Promise<readonly LookupAddress[]> {
    const port = url.port || (url.protocol === "https:" ? "443" : "80");
    const isAllowed = allowed.has(url.hostname) || allowed.has(`${url.hostname}:${port}`);
    const host = url.hostname.replace(/^\[|\]$/g, "");
    if (!isAllowed && isIP(host) === 0 && !isPublicName(host)) throw notPublic();
    const addresses = isIP(host) === 0 ? await resolve(host) : [host];
    // One private address among public ones is no accident.
    if (!isAllowed && !addresses.every(isPublicAddress)) throw notPublic();
    if (addresses.length === 0) throw new ToolFailure("unreachable", "The name has no address.");
    return addresses.map((address) => ({ address, family: isIP(address) }));
  }
}

const redirections = new Set([301, 302, 303, 307, 308]);

function checkedUrl(given: string, base?: URL): URL {
  if (!URL.canParse(given, base?.href)) throw new ToolFailure("invalid-input", "This is not a URL.");
  const url = new URL(given, base);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new ToolFailure("refused", "Only http and https are fetched.", { violation: "scheme" });
  }
  if (url.username !== "" || url.password !== "")
    throw new ToolFailure("refused", "The URL has a password in it.");
  return url;
}

function notPublic(): ToolFailure {
  return new ToolFailure("refused", "This host is not on the public internet.", {
    violation: "private-host",
  });
}

function get(url: URL, addresses: readonly LookupAddress[], signal: AbortSignal): Promise<IncomingMessage> {
  // Node asks this instead of a name server. A host that is an address already was checked as it stands in the URL.
  const lookup: LookupFunction = (_name, { all }, done) => {
    const [first] = addresses;
    if (all) done(null, [...addresses]);
    else done(null, first?.address ?? "", first?.family);
  };
  const request = url.protocol === "https:" ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    // No agent: a connection that was made for another call has not been checked for this one.
    const sent = request(url, { agent: false, lookup, signal, headers: requestHeaders }, resolve);
    sent.on("error", reject);
    // What changes to another protocol gives neither a response nor an error.
    sent.on("close", () => reject(new Error("closed")));
    sent.end();
  });
}

const requestHeaders = {
  "user-agent": "runwire-web-fetch/1",
  accept: "text/html, text/*, application/json, application/xml;q=0.9, */*;q=0.1",
  "accept-encoding": "gzip, br",
};

async function contentOf(response: IncomingMessage, url: URL, bytesMax: number): Promise<unknown> {
  const [type = "", ...parameters] = (response.headers["content-type"] ?? "").toLowerCase().split(";");
  const content_type = type.trim();
  if (!isText(content_type)) {
    throw new ToolFailure(
      "not-text",
      `This is ${content_type.slice(0, 100) || "of no known type"}, not text.`,
    );
  }
  const { bytes, truncated } = await readBody(decoded(response), bytesMax);
  const text = decoderFor(parameters).decode(bytes);
  const isHtml = content_type === "text/html" || content_type === "application/xhtml+xml";
  const content = isHtml ? pageOf(text) : { text };
  return { url: url.href, status: response.statusCode, content_type, ...content, truncated };
}

function isText(type: string): boolean {
  return /^text\/|^application\/(json|xml|javascript|yaml|x-yaml|x-ndjson)$|[+](json|xml|yaml)$/.test(type);
}

/** Without its compression. As nothing is read ahead, what a few bytes unfold to does not matter. */
function decoded(response: IncomingMessage): Readable {
  const encoding = (response.headers["content-encoding"] ?? "identity").trim().toLowerCase();
  if (encoding === "identity" || encoding === "") return response;
  const decoder = decoders.get(encoding);
  if (decoder === undefined)
    throw new ToolFailure("not-text", "The page is encoded in a way that is not known.");
  // The reader of the last stream is told of an error in any of them.
  return pipeline(response, decoder(), () => {});
}

const decoders = new Map([
  ["gzip", () => createGunzip()],
  ["x-gzip", () => createGunzip()],
  ["deflate", () => createInflate()],
  ["br", () => createBrotliDecompress()],
]);

async function readBody(body: Readable, bytesMax: number): Promise<{ bytes: Buffer; truncated: boolean }> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    // Leaving the loop destroys the stream.
    if (length > bytesMax) break;
  }
  return { bytes: Buffer.concat(chunks).subarray(0, bytesMax), truncated: length > bytesMax };
}

function decoderFor(parameters: readonly string[]): TextDecoder {
  const charset = parameters.map((text) => /^\s*charset="?([\w-]+)"?\s*$/.exec(text)?.[1]).find(Boolean);
  try {
    return new TextDecoder(charset ?? "utf-8");
  } catch {
    // A name that nobody knows: most pages are UTF-8, whatever they say.
    return new TextDecoder();
  }
}

async function resolveBySystem(name: string): Promise<readonly string[]> {
  const found = await systemLookup(name, { all: true, verbatim: true });
  return found.map(({ address }) => address);
}
