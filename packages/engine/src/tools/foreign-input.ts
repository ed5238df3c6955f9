// What fits a schema that somebody else wrote. It is read and never compiled, and its patterns never run: only what kind of
// value stands where, what is needed and what may be chosen from is checked. The rest its server checks itself.

import { type Facts, isObject } from "@runwire/protocol";
import { ToolFailure } from "../tool.js";
import { toolLimits } from "./limits.js";

/** Throws a ToolFailure `invalid-input` that names what is wrong. */
export function checkForeign(schema: Facts, input: unknown): void {
  const faults: string[] = [];
  look(schema, input, "input", faults);
  if (faults.length === 0) return;
  const told = faults.slice(0, toolLimits.faultsToldMax).join("; ");
  throw new ToolFailure("invalid-input", `The input does not fit: ${told}.`);
}

function look(schema: unknown, value: unknown, where: string, faults: string[]): void {
  // One more than is told is enough.
  if (!isObject(schema) || faults.length > toolLimits.faultsToldMax) return;
  const types = typesOf(schema.type);
  if (types.length > 0 && !types.some((type) => isOf(type, value))) {
    faults.push(`${where} must be ${types.join(" or ")}`);
    return;
  }
  // Lists of objects are rare, and would have to be compared in depth.
  const choices = Array.isArray(schema.enum) ? schema.enum : "const" in schema ? [schema.const] : [];
  if (choices.length > 0 && choices.every((choice) => !isObject(choice) && !Array.isArray(choice))) {
    if (!choices.includes(value))
      faults.push(`${where} must be one of ${JSON.stringify(choices).slice(0, 200)}`);
  }
  if (isObject(value)) lookInside(schema, value, where, faults);
  else if (Array.isArray(value) && !Array.isArray(schema.prefixItems))
    for (const [i, item] of value.entries()) look(schema.items, item, `${where}.${i}`, faults);
}

function lookInside(schema: Facts, value: Facts, where: string, faults: string[]): void {
  const properties = isObject(schema.properties) ? schema.properties : {};
  for (const name of Array.isArray(schema.required) ? schema.required : [])
    if (typeof name === "string" && !Object.hasOwn(value, name))
      faults.push(`${where} must have required property '${name.slice(0, 100)}'`);
  const isClosed = schema.additionalProperties === false && schema.patternProperties === undefined;
  for (const [name, member] of Object.entries(value)) {
    if (Object.hasOwn(properties, name))
      look(properties[name], member, `${where}.${name}`.slice(0, 200), faults);
    else if (isClosed) faults.push(`${where} has no member ${JSON.stringify(name.slice(0, 100))}`);
  }
}

const kinds: { readonly [type: string]: (value: unknown) => boolean } = {
  null: (value) => value === null,
  boolean: (value) => typeof value === "boolean",
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: Number.isInteger,
  array: Array.isArray,
  object: isObject,
};

function typesOf(type: unknown): readonly string[] {
  const named = Array.isArray(type) ? type : [type];
  return named.every((one) => typeof one === "string" && Object.hasOwn(kinds, one)) ? named : [];
}

function isOf(type: string, value: unknown): boolean {
  return kinds[type]?.(value) ?? true;
}
