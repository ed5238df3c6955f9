// Where the server is that a command talks to, and what lets it in. Both come from flags, then variables.

import type { Endpoint } from "@runwire/client";
import { RunwireError } from "@runwire/protocol";
import type { Command } from "commander";
import { oneLine } from "./watch/harmless.js";

export interface ServerFlags {
  readonly url?: string;
  readonly key?: string;
}

const defaultUrl = "http://127.0.0.1:4700";

export function addServerOptions(command: Command): Command {
  return command
    .option("--url <url>", `the server (RUNWIRE_URL, default ${defaultUrl})`)
    .option(
      "--key <key>",
      "an API key; better in RUNWIRE_TOKEN, because everyone on the machine can see flags",
    );
}

/** Throws an Error with one line that says what is wrong. */
export function endpointOf({ url, key }: ServerFlags, env: NodeJS.ProcessEnv): Endpoint {
  const base = url ?? (env.RUNWIRE_URL || defaultUrl);
  const from = url === undefined ? "RUNWIRE_URL" : "--url";
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol)) {
    // Without its scheme an address may hold a password all the same.
    const given = base.includes("@") ? "what was given" : JSON.stringify(base);
    throw new Error(`${from}: ${given} is not possible; it takes an address as ${defaultUrl}`);
  }
  const { username, password } = new URL(base);
  // It is not said again either: no request takes one along, and it would look as if no server were there.
  if (username !== "" || password !== "")
    throw new Error(`${from}: an address has no name and no password; a key goes into RUNWIRE_TOKEN`);
  const token = key ?? (env.RUNWIRE_TOKEN || undefined);
  if (token === undefined) return { base };
  // What was given is not said again: it may be a secret.
  if (!/^[\x21-\x7e]+$/.test(token)) {
    const given = key === undefined ? "RUNWIRE_TOKEN" : "--key";
    throw new Error(`${given}: that is not a key; \`runwire keys create\` makes one`);
  }
  return { base, headers: { authorization: `Bearer ${token}` } };
}

/** How another command reaches the same server: for lines that say what to type next. */
export function sameServer({ url }: ServerFlags): string {
  return url === undefined ? "" : ` --url ${url}`;
}

/** Runs a command's work; what the server refuses becomes one line that says what to do. */
export async function reach(flags: ServerFlags, work: (endpoint: Endpoint) => Promise<void>): Promise<void> {
  const endpoint = endpointOf(flags, process.env);
  try {
    await work(endpoint);
  } catch (error) {
    if (!(error instanceof RunwireError)) throw error;
    throw new Error(adviceOn(error, endpoint.base), { cause: error });
  }
}

export function adviceOn(error: RunwireError, base: string): string {
  const { code, row } = error;
  if (code === "KAI-STREAM-CONN-0003") {
    return `no server answers at ${base}; start one with \`runwire serve\`, or name another with --url or RUNWIRE_URL`;
  }
  if (code.startsWith("KAI-AUTH-TOKEN-")) {
    return `${oneLine(error.message)}; set RUNWIRE_TOKEN to a key of ${base} (\`runwire keys create\` makes one) [${code}]`;
  }
  if (code === "KAI-RUN-MISSING-0001") {
    return `${oneLine(error.message)}; \`runwire runs\` lists those you may see [${code}]`;
  }
  return `${oneLine(error.message).replace(/\.$/, "")}. ${row.help} [${code}]`;
}
