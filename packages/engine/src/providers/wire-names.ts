// Tools and calls have names that providers refuse: `web.fetch` has a dot, and others are too long. Within one request
// every name gets one that all providers take, and no two get the same.

import { createHash } from "node:crypto";

const taken = /^[a-zA-Z0-9_-]{1,64}$/;
const charsMax = 64;

export interface WireNames {
  /** As the provider is told. */
  out(name: string): string;
  /** What the provider means; a name it made up stays as it is. */
  back(wireName: string): string;
}

/** Good names stay themselves, and the rest depend on nothing but the set: so prompts stay equal, and cached. */
export function wireNames(names: Iterable<string>): WireNames {
  const all = [...new Set(names)].sort();
  const outward = new Map<string, string>();
  const inward = new Map<string, string>();
  const give = (name: string, wireName: string): void => {
    outward.set(name, wireName);
    inward.set(wireName, name);
  };
  for (const name of all) if (taken.test(name)) give(name, name);
  for (const name of all) {
    if (outward.has(name)) continue;
    give(name, candidates(name).find((candidate) => !inward.has(candidate)) ?? "");
  }
  return {
    out: (name) => outward.get(name) ?? name,
    back: (wireName) => inward.get(wireName) ?? wireName,
  };
}

/** The readable one first; a clash gets a piece of the name's hash, longer and longer. */
function candidates(name: string): readonly string[] {
  const plain = name.replace(/[^a-zA-Z0-9_-]/g, "_");
  const hash = createHash("sha256").update(name).digest("hex");
  const marked = [8, 16, 32, 63].map((length) => {
    const mark = hash.slice(0, length);
    return `${plain.slice(0, charsMax - length - 1)}_${mark}`;
  });
  return plain.length >= 1 && plain.length <= charsMax ? [plain, ...marked] : marked;
}
