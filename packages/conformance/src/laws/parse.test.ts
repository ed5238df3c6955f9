// What a generator of every type makes, the edge takes, and hands on unchanged.

import { isId, type NamedType, parseDraft, RunwireError } from "@runwire/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  arbitraryDraft,
  arbitraryDraftOf,
  arbitraryId,
  arbitraryOpenType,
  namedTypes,
} from "../arbitraries.js";
import { arbitraryJson, throughJson } from "../arbitrary-json.js";
import { arbitraryRun } from "../arbitrary-runs.js";

describe("the edge", () => {
  it.each(namedTypes)(
    "takes every draft of type %s unchanged [RW-DRAFT-1] [RW-DRAFT-3]",
    (type: NamedType) => {
      fc.assert(fc.property(arbitraryDraftOf(type), takesUnchanged), { numRuns: 30 });
    },
  );

  it("takes drafts of open families and vendors unchanged [RW-TYPE-2] [RW-DRAFT-3]", () => {
    fc.assert(fc.property(arbitraryOpenType.chain(arbitraryDraftOf), takesUnchanged));
  });

  it("takes every draft of a coherent run [RW-DRAFT-1]", () => {
    fc.assert(
      fc.property(arbitraryRun(), ({ drafts }) => {
        for (const draft of drafts) takesUnchanged(draft);
      }),
      { numRuns: 50 },
    );
  });

  it("either takes a value or says which error it is, and never breaks [RW-DRAFT-2] [RW-TYPE-5]", () => {
    const member = fc.constantFrom(
      "type",
      "payload",
      "child_id",
      "scope",
      "text",
      "call_id",
      "plan",
      "state",
      "steps",
    );
    const spoiled = fc
      .tuple(arbitraryDraft, member, arbitraryJson, fc.boolean())
      .map(([draft, name, value, inside]) =>
        inside ? { ...draft, payload: { ...draft.payload, [name]: value } } : { ...draft, [name]: value },
      );
    fc.assert(
      fc.property(fc.oneof(arbitraryJson, spoiled), (value) => {
        try {
          takesUnchanged(value);
        } catch (failure) {
          if (!(failure instanceof RunwireError)) throw failure;
          expect(failure.code).toMatch(/^KAI-STREAM-PROTO-000[12]$/);
          expect(failure.message).toMatch(/event: /);
        }
        expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
      }),
      { numRuns: 300 },
    );
  });

  it("agrees with the generator on what an id is [RW-ID-3]", () => {
    fc.assert(fc.property(arbitraryId, isId));
  });
});

function takesUnchanged(value: unknown): void {
  const before = JSON.stringify(value);
  const draft = parseDraft(throughJson(value));
  expect(JSON.stringify(value)).toBe(before);
  const { type, payload, child_id, scope } = value as { [member: string]: unknown };
  expect(JSON.stringify(draft)).toBe(
    JSON.stringify({ type, payload, child_id: child_id ?? undefined, scope: scope ?? undefined }),
  );
}
