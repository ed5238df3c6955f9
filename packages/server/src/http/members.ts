// Members of a request body, checked one by one: what is wrong is named, and what nobody knows is refused.

import { isId, isObject, RunwireError } from "@runwire/protocol";

type Body = { readonly [member: string]: unknown };

export function onlyMembers(body: Body, names: readonly string[]): void {
  for (const name of Object.keys(body)) {
    if (!names.includes(name))
      throw wrong(`there is no member \`${name.slice(0, 60)}\`; it takes ${names.join(", ") || "none"}`);
  }
}

export function stringMember(body: Body, name: string): string | undefined {
  const value = own(body, name);
  if (value === undefined || typeof value === "string") return value;
  throw wrong(`\`${name}\` must be a string`);
}

export function requiredString(body: Body, name: string): string {
  const value = stringMember(body, name);
  if (value === undefined || value === "") throw wrong(`\`${name}\` is needed`);
  return value;
}

export function idMember(body: Body, name: string): string | undefined {
  const value = own(body, name);
  if (value === undefined || isId(value)) return value;
  throw wrong(`\`${name}\` must be an id (letters, digits, \`_.:-\`, at most 128)`);
}

export function booleanMember(body: Body, name: string): boolean | undefined {
  const value = own(body, name);
  if (value === undefined || typeof value === "boolean") return value;
  throw wrong(`\`${name}\` must be true or false`);
}

export function choiceMember<T extends string>(
  body: Body,
  name: string,
  choices: readonly T[],
): T | undefined {
  const value = own(body, name);
  if (value === undefined) return undefined;
  const choice = choices.find((one) => one === value);
  if (choice === undefined) throw wrong(`\`${name}\` must be one of ${choices.join(", ")}`);
  return choice;
}

export function integerMember(body: Body, name: string, min: number, max: number): number | undefined {
  const value = own(body, name);
  if (value === undefined) return undefined;
  if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max)
    return value as number;
  throw wrong(`\`${name}\` must be a whole number from ${min} to ${max}`);
}

export function objectMember(body: Body, name: string): Body | undefined {
  const value = own(body, name);
  if (value === undefined || isObject(value)) return value;
  throw wrong(`\`${name}\` must be an object`);
}

export function objectsMember(body: Body, name: string): readonly Body[] | undefined {
  const value = own(body, name);
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.every(isObject)) return value;
  throw wrong(`\`${name}\` must be an array of objects`);
}

export function stringsMember(body: Body, name: string): readonly string[] | undefined {
  const value = own(body, name);
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
  throw wrong(`\`${name}\` must be an array of strings`);
}

/** Null is the same as absent. */
function own(body: Body, name: string): unknown {
  const value = Object.hasOwn(body, name) ? body[name] : undefined;
  return value === null ? undefined : value;
}

export function wrong(detail: string): RunwireError {
  return new RunwireError("KAI-REQUEST-BODY-0002", detail);
}
