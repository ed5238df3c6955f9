// What is wrong with a message, rule by rule. A type that the standard does not name is nothing wrong.

import type { Facts } from "../../events.js";
import { isObject } from "../../parse.js";
import { objectMembers, strictNeeds, textMembers, timestampPattern } from "./schemas.js";
import { runtimeTypePattern, strictSchemaVersion, typeCharsMax } from "./types.js";

export interface RuntimeViolation {
  /** `RT-ENV-3` */
  readonly rule: string;
  readonly message: string;
}

interface Check {
  readonly rule: string;
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
  { rule: "RT-STRICT-3", wrong: ({ payload }) => (isObject(payload) ? [] : ["`payload` must be an object"]) },
  ...strictNeeds.map(
    ({ rule, of, members }): Check => ({
      rule,
      wrong: (message) =>
        isText(message.type) && !of.test(message.type)
          ? []
          : members.filter((name) => !Object.hasOwn(message, name)).map((name) => `\`${name}\` is missing`),
    }),
  ),
];

/** Every rule that a message breaks; none where it is sound. `strict` asks for the ids that join facts. */
export function validateRuntime(
  message: unknown,
  { profile }: { readonly profile?: "strict" } = {},
): readonly RuntimeViolation[] {
  if (!isObject(message)) return [{ rule: "RT-ENV-1", message: "a message is a JSON object" }];
  const checks = profile === "strict" ? [...envelope, ...strict] : envelope;
  return checks.flatMap(({ rule, wrong }) => wrong(message).map((text) => ({ rule, message: text })));
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
