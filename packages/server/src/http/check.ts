// What a request says, held against its schema. The first thing that is wrong is named, with what would be right,
// in the words of this server and without the value: an error holds no payload.

import { RunwireError } from "@runwire/protocol";
import type { z } from "zod";

/** A query parameter that is wrong or unknown is 400. */
export function checkQuery<T>(schema: z.ZodType<T>, query: URLSearchParams): T {
  if (query.has("__proto__")) throw badParam("`__proto__`", "is no parameter anywhere");
  const values: { [name: string]: string } = {};
  // The first of several counts.
  for (const [name, value] of query) if (!Object.hasOwn(values, name)) values[name] = value;
  const found = schema.safeParse(values, { reportInput: true });
  if (found.success) return found.data;
  const issue = found.error.issues[0] as z.core.$ZodIssue;
  if (issue.code === "unrecognized_keys") {
    const known = Object.keys((schema as unknown as z.ZodObject).shape).join(", ");
    throw badParam(quoted(issue.keys[0]), `is no parameter here; there is ${known || "none"}`);
  }
  throw badParam(quoted(issue.path.join(".")), takes(issue));
}

/** A member that is wrong or unknown is 422. */
export function checkBody<T>(schema: z.ZodType<T>, body: unknown): T {
  const found = schema.safeParse(body, { reportInput: true });
  if (found.success) return found.data;
  const issue = found.error.issues[0] as z.core.$ZodIssue;
  const at = issue.path.join(".");
  if (issue.code === "unrecognized_keys") {
    const inside = at === "" ? "" : ` of ${quoted(at)}`;
    const known = at === "" ? membersOf(schema) : "";
    throw wrongBody(`there is no member ${quoted(issue.keys[0])}${inside}${known}`);
  }
  throw wrongBody(at === "" ? `the body ${takes(issue)}` : `${quoted(at)} ${takes(issue)}`);
}

export function badParam(name: string, detail: string): RunwireError {
  return new RunwireError("KAI-STREAM-PARAM-0001", `${name} ${detail}`);
}

export function wrongBody(detail: string): RunwireError {
  return new RunwireError("KAI-REQUEST-BODY-0002", detail);
}

const kinds: { readonly [expected: string]: string } = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  object: "an object",
  record: "an object",
  array: "an array",
};

function takes(issue: z.core.$ZodIssue): string {
  if (issue.input === undefined && issue.code !== "custom") return "is needed";
  switch (issue.code) {
    case "invalid_type":
      return `must be ${kinds[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return `must be one of ${issue.values.join(", ")}`;
    case "too_small":
      return issue.origin === "string" || issue.origin === "array"
        ? `must have at least ${issue.minimum} ${issue.origin === "array" ? "items" : "characters"}`
        : `must be ${issue.inclusive === false ? "more than" : "at least"} ${issue.minimum}`;
    case "too_big":
      return issue.origin === "string" || issue.origin === "array"
        ? `may have at most ${issue.maximum} ${issue.origin === "array" ? "items" : "characters"}`
        : `must be ${issue.inclusive === false ? "less than" : "at most"} ${issue.maximum}`;
    default:
      return issue.message;
  }
}

function membersOf(schema: z.ZodType): string {
  const { shape } = schema as unknown as Partial<z.ZodObject>;
  return shape === undefined ? "" : `; it takes ${Object.keys(shape).join(", ") || "none"}`;
}

function quoted(name: string | undefined): string {
  return `\`${(name ?? "").slice(0, 60)}\``;
}
