// Redaction takes out the values of members by their names, at any depth, says which, and touches nothing else.

import { type Draft, type Facts, limits, parseDraft } from "@runwire/protocol";
import { redactor } from "@runwire/server";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { arbitraryDraft } from "../arbitraries.js";
import { arbitraryJson } from "../arbitrary-json.js";

const secretNames = [
  "password",
  "PassWord",
  "db_secret_1",
  "SECRET",
  "x-api_key",
  "authorization",
  "a/b~password",
];
const patterns = ["password", "*secret*", "*api_key", "authorization", "*/b~*"];
const redact = redactor(patterns);

/** A payload with secrets planted in it at any depth: none of the words of the secret occurs elsewhere. */
const secret = "swordfish";
const planted = fc.letrec<{ node: unknown }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4 },
    arbitraryJson,
    fc.tuple(fc.constantFrom(...secretNames), tie("node")).map(([name, node]) => ({
      [name]: [secret, node],
      beside: node,
    })),
    fc.tuple(tie("node"), tie("node")).map(([a, b]) => [a, { b }]),
  ),
})).node;

const drafts = fc.tuple(arbitraryDraft, planted).map(([draft, more]) => {
  const payload = Object.fromEntries([...Object.entries(draft.payload), ["more", more]]);
  return { ...draft, payload } as Draft;
});

function at(value: unknown, pointer: string): unknown {
  return pointer
    .split("/")
    .slice(1)
    .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce((node, name) => (node as Facts)[name], value);
}

describe("redaction", () => {
  it("leaves no value of a member that a pattern names, and says where they were [RW-REDACT-1]", () => {
    fc.assert(
      fc.property(drafts, (draft) => {
        const payload = draft.payload as Facts;
        const before = JSON.stringify(payload);
        const cleared = redact(payload, draft.type);
        expect(JSON.stringify(payload)).toBe(before);
        expect(JSON.stringify(cleared)).not.toContain(secret);
        parseDraft({ ...draft, payload: cleared });
        if (cleared === payload) {
          expect(before).not.toContain(secret);
          return;
        }
        const { redacted } = cleared as { redacted: string[] };
        expect(new Set(redacted).size).toBe(redacted.length);
        // Put back what was taken out, and it is what was sent.
        const whole = structuredClone(cleared) as { redacted?: unknown };
        for (const pointer of redacted) {
          expect(at(cleared, pointer)).toBe("[redacted]");
          const cut = pointer.lastIndexOf("/");
          const name = pointer
            .slice(cut + 1)
            .replaceAll("~1", "/")
            .replaceAll("~0", "~");
          (at(whole, pointer.slice(0, cut)) as { [name: string]: unknown })[name] = at(payload, pointer);
        }
        delete whole.redacted;
        expect(whole).toEqual(payload);
      }),
      { numRuns: 300 },
    );
  });

  it("never takes what an event's type asks for, whatever the patterns say [RW-REDACT-1]", () => {
    const all = redactor(["*"]);
    fc.assert(
      fc.property(arbitraryDraft, (draft) => {
        const payload = all(draft.payload as Facts, draft.type);
        parseDraft({ ...draft, payload });
      }),
      { numRuns: 300 },
    );
  });

  it("reads patterns as names with stars, in any case", () => {
    const matches = (pattern: string, name: string): boolean => {
      const facts = { [name]: 1 };
      return redactor([pattern])(facts) !== facts;
    };
    const name = fc.string({ unit: fc.constantFrom("a", "B", "*", "."), maxLength: 6 });
    fc.assert(
      fc.property(name, name, (pattern, given) => {
        const source = pattern.replaceAll(".", "\\.").replaceAll("*", ".*");
        expect(matches(pattern, given)).toBe(new RegExp(`^${source}$`, "is").test(given));
      }),
      { numRuns: 2000 },
    );
    // A name that a backtracking match would never be done with.
    const long = "a".repeat(1_000_000);
    expect(matches("*a*a*a*a*a*a*b", long)).toBe(false);
  });

  it("names at most a hundred, and none by a pointer that is longer than what it took out", () => {
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`n${i}`, { password: i }]));
    const cleared = redact(many, "custom") as { redacted: string[] };
    expect(cleared.redacted).toHaveLength(limits.redactedNamesMax);
    expect(JSON.stringify(cleared)).not.toMatch(/"password":\d/);
    const deep = redact({ ["k".repeat(1_000_000)]: [{ password: 1 }, { password: 2 }] }, "custom");
    expect(deep.redacted).toEqual([]);
    expect(JSON.stringify(deep)).not.toMatch(/"password":\d/);
  });

  it("keeps members called like those of Object.prototype what they were", () => {
    const payload = JSON.parse('{"__proto__":{"password":"x","polluted":1}}') as Facts;
    const cleared = redact(payload, "custom");
    expect(JSON.stringify(cleared)).toBe(
      '{"__proto__":{"password":"[redacted]","polluted":1},"redacted":["/__proto__/password"]}',
    );
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it("goes through a list item by item, and never lists its places", () => {
    let asked = 0;
    const list = new Proxy([{ password: "x" }, 1, [{ password: "y" }]], {
      ownKeys(target) {
        asked += 1;
        return Reflect.ownKeys(target);
      },
    });
    expect(redactor(["password"])({ list }, "custom")).toEqual({
      list: [{ password: "[redacted]" }, 1, [{ password: "[redacted]" }]],
      redacted: ["/list/0/password", "/list/2/0/password"],
    });
    expect(asked).toBe(0);
  });
});
