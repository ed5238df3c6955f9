// What the operator says to the built-in agent: which tools it has beside its own, and how far they reach.

// Only its types: most commands that read settings need no agent, and would wait for its code.
import type { HookCommand, McpServer } from "@runwire/engine";
import { isObject } from "@runwire/protocol";
import { jsonIn } from "./json.js";

export interface AgentSettings {
  /** A command may do whatever the server's user may. */
  readonly shell: "on" | "off";
  /** Private hosts that the agent may fetch from. */
  readonly fetchHosts: readonly string[];
  readonly mcp: readonly McpServer[];
  /** Commands that look at calls before and after their tools run. */
  readonly hooks: readonly HookCommand[];
  /** Models that go on where a run's own is given up on. */
  readonly fallbackModels: readonly string[];
}

export const defaultAgentSettings: AgentSettings = {
  shell: "off",
  fetchHosts: [],
  mcp: [],
  hooks: [],
  fallbackModels: [],
};

/** Throws an Error that names the server and the member that is wrong, and never its value, which may be a secret. */
export function readMcp(text: string): readonly McpServer[] {
  const value = jsonIn(text);
  if (!isObject(value)) throw new Error(`it takes a JSON object, as ${exampleText}`);
  return Object.entries(value).map(([name, given]) => serverOf(name, given));
}

const exampleText = '{"files": {"command": "mcp-files", "args": ["/srv"]}, "wiki": {"url": "https://…/mcp"}}';
const commonMembers = ["type", "callMs", "connectMs"];
const kinds = {
  command: { types: ["stdio"], members: ["command", "args", "env", "cwd", ...commonMembers] },
  url: { types: ["http", "streamable-http"], members: ["url", "headers", ...commonMembers] },
} as const;

/** Tools are called by the name of their server, so no server may be named like tools of our own. */
export const ownNames: ReadonlySet<string> = new Set([
  "clarify",
  "demo",
  "file",
  "plan",
  "shell",
  "spawn",
  "web",
]);

function serverOf(name: string, given: unknown): McpServer {
  const wrong = (what: string): Error =>
    new Error(`the MCP server ${JSON.stringify(name.slice(0, 60))} ${what}`);
  if (!/^[a-z0-9][a-z0-9_-]{0,31}$/.test(name))
    throw wrong("must be named with lower-case letters, digits, `-` and `_`, 32 at most");
  if (ownNames.has(name)) throw wrong("has the name of tools of the agent itself; choose another");
  if (!isObject(given)) throw wrong("must be an object with `command` or `url`");
  if ("command" in given === "url" in given) throw wrong("needs either `command` or `url`");
  const { types, members } = "command" in given ? kinds.command : kinds.url;
  const unknown = Object.keys(given).find((member) => !(members as readonly string[]).includes(member));
  if (unknown !== undefined)
    throw wrong(
      `has a member \`${unknown.slice(0, 60)}\`, which means nothing; there is ${members.join(", ")}`,
    );
  const { type, ...rest } = given;
  if (type !== undefined && !(types as readonly unknown[]).includes(type))
    throw wrong(`has a \`type\` that it cannot have; here it is ${types.join(" or ")}`);
  for (const [member, value] of Object.entries(rest)) {
    const row = memberRows[member];
    if (row !== undefined && !row.fits(value)) throw wrong(`has a \`${member}\` that is not ${row.takes}`);
  }
  return { name, ...rest } as McpServer;
}

interface MemberRow {
  readonly takes: string;
  fits(value: unknown): boolean;
}

const text: MemberRow = { takes: "a text", fits: (value) => typeof value === "string" && value !== "" };
const texts: MemberRow = {
  takes: "an object of texts",
  fits: (value) => isObject(value) && Object.values(value).every((item) => typeof item === "string"),
};
const milliseconds: MemberRow = {
  takes: "a number of milliseconds up to 600000",
  fits: (value) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 600_000,
};

const memberRows: { readonly [member: string]: MemberRow } = {
  command: text,
  cwd: text,
  args: {
    takes: "a list of texts",
    fits: (value) => Array.isArray(value) && value.every((item) => typeof item === "string"),
  },
  env: texts,
  headers: texts,
  url: {
    takes: "an http or https address",
    fits: (value) =>
      typeof value === "string" && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol),
  },
  callMs: milliseconds,
  connectMs: milliseconds,
};
