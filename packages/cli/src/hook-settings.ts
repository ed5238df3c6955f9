// The operator's hooks: which command looks at which calls, and when.

import { basename } from "node:path";
import type { HookCommand, HookPoint } from "@runwire/engine";
import { isObject } from "@runwire/protocol";
import { jsonIn } from "./json.js";

const points: { readonly [P in HookPoint]: true } = {
  pre_tool_use: true,
  post_tool_use: true,
  post_tool_failure: true,
};

const hooksMax = 100;
const timeoutMs = 10_000;
const timeoutMsMax = 600_000;
const members = ["name", "point", "tools", "command", "timeout_ms", "required"];
const exampleText = '[{"point": "pre_tool_use", "tools": ["shell"], "command": ["/usr/local/bin/check"]}]';

/** Throws an Error that names the hook and the member that is wrong. */
export function readHooks(text: string): readonly HookCommand[] {
  // Empty: a list without hooks in runwire.config.json.
  const value = text === "" ? [] : jsonIn(text);
  if (!Array.isArray(value)) throw new Error(`it takes a JSON list, as ${exampleText}`);
  if (value.length > hooksMax) throw new Error(`it takes ${hooksMax} hooks at most`);
  const hooks: HookCommand[] = [];
  for (const [i, given] of value.entries()) hooks.push(hookOf(given, i + 1, hooks));
  return hooks;
}

function hookOf(given: unknown, n: number, before: readonly HookCommand[]): HookCommand {
  const wrong = (what: string): Error => new Error(`hook ${n} ${what}`);
  if (!isObject(given)) throw wrong(`must be an object, as in ${exampleText}`);
  const unknown = Object.keys(given).find((member) => !members.includes(member));
  if (unknown !== undefined)
    throw wrong(
      `has a member \`${unknown.slice(0, 60)}\`, which means nothing; there is ${members.join(", ")}`,
    );
  const { point, command, tools = ["*"], timeout_ms = timeoutMs, required = false } = given;
  if (typeof point !== "string" || !Object.hasOwn(points, point))
    throw wrong(`needs a \`point\`, one of ${Object.keys(points).join(", ")}`);
  if (!isTexts(command) || command[0] === undefined || command[0] === "")
    throw wrong("needs a `command`, a list of texts: the program and its arguments");
  // It runs in the run's folder: what is found there, the agent may have written.
  if (command[0].includes("/") && !command[0].startsWith("/"))
    throw wrong("has a `command` whose program is neither a bare name nor a whole path");
  if (!isTexts(tools) || tools.length === 0)
    throw wrong("has `tools` that are not a list of names, or of beginnings of names as `file.*`");
  if (!Number.isInteger(timeout_ms) || Number(timeout_ms) < 1 || Number(timeout_ms) > timeoutMsMax)
    throw wrong(`has a \`timeout_ms\` that is not a number of milliseconds up to ${timeoutMsMax}`);
  if (typeof required !== "boolean") throw wrong("has a `required` that is not true or false");
  const name = nameOf(given.name, command[0], before);
  if (name === undefined)
    throw wrong("has a `name` that is another's, or not of letters, digits, `-`, `_` and `.`, 48 at most");
  return {
    name,
    point: point as HookPoint,
    tools,
    command: command as [string, ...string[]],
    timeoutMs: Number(timeout_ms),
    required,
  };
}

/** As given; else as the program is called, with a number where there are several. */
function nameOf(given: unknown, program: string, before: readonly HookCommand[]): string | undefined {
  const isFree = (name: string): boolean => !ownNames.has(name) && !before.some((hook) => hook.name === name);
  if (given !== undefined)
    return typeof given === "string" && namePattern.test(given) && isFree(given) ? given : undefined;
  const base =
    basename(program)
      .replace(/[^A-Za-z0-9_.-]/g, "-")
      .slice(0, 40) || "hook";
  const names = [base, ...Array.from({ length: hooksMax }, (_, i) => `${base}-${i + 2}`)];
  return names.find(isFree);
}

/** The engine's own. */
const ownNames: ReadonlySet<string> = new Set(["input-check", "file-changes"]);
const namePattern = /^[A-Za-z0-9_.-]{1,48}$/;

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string" && !item.includes("\0"));
}
