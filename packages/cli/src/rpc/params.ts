// Params by name, each method's checked against its row. What their values may be is the server's to say.

import { type Facts, isObject } from "@runwire/protocol";
import { wrongParams } from "./message.js";

/** A question mark: it may be left out. */
export type Kind = `${"text" | "number" | "cursor" | "flag" | "list" | "object" | "any"}${"" | "?"}`;
export type Takes = { readonly [name: string]: Kind };

const fits: { readonly [kind: string]: readonly [string, (value: unknown) => boolean] } = {
  text: ["a string", (value) => typeof value === "string"],
  number: ["a number", (value) => typeof value === "number"],
  cursor: ["a number", (value) => typeof value === "number" || typeof value === "string"],
  flag: ["true or false", (value) => typeof value === "boolean"],
  list: ["an array", Array.isArray],
  object: ["an object", isObject],
  any: ["anything", () => true],
};

/** Throws an RpcError that names the first one that is wrong. */
export function checkedParams(takes: Takes, params: unknown): Facts {
  const given = params ?? {};
  if (!isObject(given)) throw wrongParams("they are given by name, in an object");
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(takes, name))
      throw wrongParams(`there is no \`${name}\`; it takes ${Object.keys(takes).join(", ") || "none"}`);
  }
  for (const [name, kind] of Object.entries(takes)) {
    const [what, isFit] = fits[kind.replace("?", "")] as (typeof fits)[string];
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    if (value === undefined && kind.endsWith("?")) continue;
    if (!isFit(value)) throw wrongParams(`\`${name}\` must be ${what}`);
  }
  return given;
}
