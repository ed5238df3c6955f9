// What is wrong with a message, and with a stream of them, rule by rule. A type that the standard does not name is
// nothing wrong.

import type { Facts } from "../../events.js";
import { limits } from "../../limits.js";
import { isObject } from "../../parse.js";
import type { Validator, Violation } from "../../validate.js";
import { idOf } from "./ids.js";
import { objectMembers, strictNeeds, textMembers, timestampPattern } from "./schemas.js";
import { runtimeTypePattern, strictSchemaVersion, typeCharsMax } from "./types.js";

export const runtimeRules = {
  "RT-JSON": "a message is JSON",
  "RT-ENV-1": "a message is an object",
  "RT-ENV-2": "`type` is names with dots between them, like `task.created`",
  "RT-ENV-3": "`eventId` is a text that is not empty",
  "RT-ENV-4": "`timestamp` is an RFC 3339 time",
  "RT-ENV-5": "`sequence` is a whole number from 0, if there is one",
  "RT-ENV-6": "ids, refs and statuses are texts that are not empty",
  "RT-ENV-7": "members that the standard calls objects are objects",
  "RT-STRICT-1": `\`schemaVersion\` is ${strictSchemaVersion}`,
  "RT-STRICT-2": "every message has `runtimeId`, `sessionId` and `sequence`",
  "RT-STRICT-3": "`payload` is an object",
  "RT-STRICT-4": "what is said of a thread names it",
  "RT-STRICT-5": "what is said in a turn names it and its thread",
  "RT-STRICT-6": "what is said of a tool names its step and call; the catalog of tools has none",
  "RT-STRICT-7": "what is said of an action names it",
  "RT-STRICT-8": "what is said of a task names it",
  "RT-STRICT-9": "what is said of an attempt names its run",
  "RT-STRICT-10": "what is said of a subagent names it",
  "RT-STRICT-11": "evidence that has changed is named",
  "RT-STREAM-1": "an `eventId` is one message's",
  "RT-STREAM-2": "`sequence` goes up",
  "RT-STREAM-3": "a call ends once",
} as const;

type Rule = keyof typeof runtimeRules;

interface Check {
  readonly rule: Rule;
  /** What is wrong, once per member that is. */
  readonly wrong: (message: Facts) => readonly string[];
}

const envelope: readonly Check[] = [
  {
    rule: "RT-ENV-2",
    wrong: ({ type }) =>
      isText(type) && type.length <= typeCharsMax && runtimeTypePattern.test(type)
        ? []
        : ["`type` must be names with dots between them, like `task.created`"],
  },
  {
    rule: "RT-ENV-3",
    wrong: ({ eventId }) => (isText(eventId) ? [] : ["`eventId` must be a text that is not empty"]),
  },
  {
    rule: "RT-ENV-4",
    wrong: ({ timestamp }) =>
      isText(timestamp) && timestampPattern.test(timestamp) ? [] : ["`timestamp` must be an RFC 3339 time"],
  },
  {
    rule: "RT-ENV-5",
    wrong: ({ sequence }) =>
      sequence === undefined || (Number.isInteger(sequence) && (sequence as number) >= 0)
        ? []
        : ["`sequence` must be a whole number from 0"],
  },
  {
    rule: "RT-ENV-6",
    wrong: (message) =>
      textMembers
        .filter((name) => Object.hasOwn(message, name) && !isText(message[name]))
        .map((name) => `\`${name}\` must be a text that is not empty`),
  },
  {
    rule: "RT-ENV-7",
    wrong: (message) =>
      objectMembers
        .filter((name) => Object.hasOwn(message, name) && !isObject(message[name]))
        .map((name) => `\`${name}\` must be an object`),
  },
];

const strict: readonly Check[] = [
  {
    rule: "RT-STRICT-1",
    wrong: ({ schemaVersion }) =>
      schemaVersion === strictSchemaVersion ? [] : [`\`schemaVersion\` must be ${strictSchemaVersion}`],
  },
  {
    rule: "RT-STRICT-3",
    wrong: ({ payload }) => (isObject(payload) ? [] : ["`payload` must be an object"]),
  },
  ...strictNeeds.map(
    ({ rule, of, members }): Check => ({
      rule: rule as Rule,
      wrong: (message) =>
        isText(message.type) && !of.test(message.type)
          ? []
          : members.filter((name) => !Object.hasOwn(message, name)).map((name) => `\`${name}\` is missing`),
    }),
  ),
];

export interface RuntimeProfile {
  /** `strict` asks for the ids that join facts. */
  readonly profile?: "strict";
}

/** Every rule that a message breaks; none where it is sound. */
export function validateRuntime(message: unknown, { profile }: RuntimeProfile = {}): readonly Violation[] {
  if (!isObject(message)) return [broken("RT-ENV-1", "a message is a JSON object")];
  const checks = profile === "strict" ? [...envelope, ...strict] : envelope;
  return checks.flatMap(({ rule, wrong }) => wrong(message).map((what) => broken(rule, what)));
}

/** The same for the messages of one stream, one after the other, and what they say together. */
export function runtimeValidator(profile: RuntimeProfile = {}): Validator {
  const seen = new Set<unknown>();
  const ended = new Set<unknown>();
  let stream: unknown;
  let last = 0;

  function together(message: Facts): readonly Violation[] {
    const { type, eventId, sequence, streamId, childId, runId } = message;
    const found: Violation[] = [];
    // Each run has numbers of its own.
    if (streamId !== stream) [stream, last] = [streamId, 0];
    if (eventId !== undefined && !remember(seen, eventId))
      found.push(broken("RT-STREAM-1", `\`eventId\` ${JSON.stringify(eventId)} comes again`));
    // A snapshot stands between two messages, and has the number of the first.
    if (typeof sequence === "number" && type !== "snapshot.updated" && type !== "snapshot.repaired") {
      if (sequence <= last) found.push(broken("RT-STREAM-2", `\`sequence\` ${sequence} comes after ${last}`));
      last = Math.max(last, sequence);
    }
    const call = type === "tool.result" || type === "tool.failed" ? idOf(message, "toolCallId") : undefined;
    // Each run has calls of its own.
    if (call !== undefined && !remember(ended, JSON.stringify([streamId, childId ?? runId, call])))
      found.push(broken("RT-STREAM-3", `the call ${JSON.stringify(call)} has ended before`));
    return found;
  }

  return {
    check(text) {
      let message: unknown;
      try {
        message = JSON.parse(text);
      } catch {
        return [broken("RT-JSON", "it is not JSON")];
      }
      const found = validateRuntime(message, profile);
      return isObject(message) ? [...found, ...together(message)] : found;
    },
    end: () => [],
  };
}

/** Whether it was not there. Only so many are remembered, the oldest forgotten first. */
function remember(set: Set<unknown>, value: unknown): boolean {
  if (set.has(value)) return false;
  set.add(value);
  for (const oldest of set) {
    if (set.size <= limits.messagesSeenMax) break;
    set.delete(oldest);
  }
  return true;
}

function broken(rule: Rule, what: string): Violation {
  return { rule, what };
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
