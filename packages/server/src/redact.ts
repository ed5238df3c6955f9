// What must not be stored is taken out before anything else happens to it: whatever a member is called that a pattern
// names, at any depth, its value becomes "[redacted]", and the event says where. Names alone decide. A secret inside
// a text is not found.

import { type Draft, type EventType, type Facts, limits, typeRow } from "@runwire/protocol";
import type { Commit } from "./log/commit.js";
import type { Store } from "./store.js";

/** Takes out what a payload, or any other object of the type's, must not hold; the same object where it holds nothing. */
export type Redact = (facts: Facts, type?: EventType) => Facts;

/** Patterns are names with `*` for any characters, in any case: `password`, `*secret*`. */
export function redactor(patterns: readonly string[]): Redact {
  const tests = patterns.map(nameTest);
  const isSecret = (name: string): boolean => {
    const lower = name.toLowerCase();
    return tests.some((test) => test(lower));
  };

  return (facts, type) => {
    const found: string[] = [];
    let count = 0;

    function walk(value: unknown, path: string, kept: Kept): unknown {
      if (typeof value !== "object" || value === null) return value;
      if (Array.isArray(value)) return walkList(value, path, kept);
      let changed = false;
      const entries = Object.entries(value).map(([name, item]): [string, unknown] => {
        const at = path.length > limits.redactedCharsMax ? path : `${path}/${escaped(name)}`;
        const own = Object.hasOwn(kept, name) ? kept[name] : undefined;
        if (own === undefined && isSecret(name)) {
          changed = true;
          count += 1;
          if (found.length < limits.redactedNamesMax && at.length <= limits.redactedCharsMax) found.push(at);
          return [name, redacted];
        }
        const walked = walk(item, at, own ?? none);
        changed ||= walked !== item;
        return [name, walked];
      });
      if (!changed) return value;
      // Not by assignment: a member may be called `__proto__`.
      return Object.fromEntries(entries);
    }

    /** Item by item: places are no names, and a list may have millions of them. */
    function walkList(list: readonly unknown[], path: string, kept: Kept): readonly unknown[] {
      let changed = false;
      const items = list.map((item, i) => {
        if (typeof item !== "object" || item === null) return item;
        const walked = walk(item, path.length > limits.redactedCharsMax ? path : `${path}/${i}`, kept);
        changed ||= walked !== item;
        return walked;
      });
      return changed ? items : list;
    }

    const walked = walk(facts, "", type === undefined ? none : keptBy(type)) as Facts;
    return count === 0 || type === undefined ? walked : { ...walked, redacted: found };
  };
}

const redacted = "[redacted]";

/** Redacts what is written to commits, whoever writes it. */
export function redacting(append: Store["append"], redact: Redact): Store["append"] {
  return (key, decide) => append(key, (commit) => decide(redactingCommit(commit, redact)));
}

function redactingCommit(commit: Commit, redact: Redact): Commit {
  const cleared = (draft: Draft): Draft => {
    const payload = redact(draft.payload as Facts, draft.type);
    return payload === draft.payload ? draft : ({ ...draft, payload } as Draft);
  };
  return {
    ...commit,
    create: (run) => commit.create({ ...run, metadata: redact(run.metadata) }),
    write: (run_id, draft) => commit.write(run_id, cleared(draft)),
    asWritten: (draft) => commit.asWritten(cleared(draft)),
  };
}

/** Members that are never redacted, whatever the patterns say, and those below them. */
interface Kept {
  readonly [member: string]: Kept;
}

const none: Kept = {};
const step: Kept = { id: none, title: none, intent: none, est_tools: none, est_cost_usd: none };
const keptBelow: { readonly [kind: string]: Kept } = {
  plan: { id: none, run_id: none, steps: step, est_total_cost_usd: none },
  failure: { code: none },
};

/** An event is no longer of its type without the members that the type asks for. */
function keptBy(type: EventType): Kept {
  const members = Object.entries(typeRow(type)?.members ?? {});
  return Object.fromEntries(
    members.map(([member, kind]) => [member, keptBelow[kind.replace("?", "")] ?? none]),
  );
}

/** By the parts between the stars, each looked for once: names are as long as a producer likes. */
function nameTest(pattern: string): (lowerName: string) => boolean {
  const [first = "", ...rest] = pattern.toLowerCase().split("*");
  const last = rest.pop();
  if (last === undefined) return (name) => name === first;
  return (name) => {
    if (!name.startsWith(first) || !name.endsWith(last)) return false;
    let from = first.length;
    for (const part of rest) {
      const at = name.indexOf(part, from);
      if (at < 0) return false;
      from = at + part.length;
    }
    return from <= name.length - last.length;
  };
}

/** As JSON Pointer writes a name. */
function escaped(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}
