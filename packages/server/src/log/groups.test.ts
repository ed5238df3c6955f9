import type { Facts } from "@runwire/protocol";
import { describe, expect, it } from "vitest";
import { type Group, joinedChars, joinedPayload, pended } from "./groups.js";
import type { Record } from "./record.js";

describe("a group", () => {
  it("knows how long it is, whoever speaks in turns and however often [RW-SHAPE-7]", () => {
    for (const [type, payloads] of [
      ["text.delta", turns(5000, (i) => ({ text: "a", node: i % 3 === 0 ? "x" : "yy" }))],
      ["text.delta", turns(10, () => ({ text: "ab", nodes: [{ node: "x", chars: 1 }, { chars: 1 }] }))],
      ["audio.delta", turns(5000, (i) => ({ chunks: i % 2 === 0 ? ["abc"] : ["d", "ef"] }))],
    ] as const) {
      let groups: readonly Group[] = [];
      for (const [i, payload] of payloads.entries())
        groups = pended(groups, { type, scopeText: null } as Record, i + 1, payload);
      const [group] = groups as [Group];
      const isLong = JSON.stringify(joinedPayload(group)).length;
      // Each piece is counted with what its names and quotes take at most.
      expect(joinedChars(group)).toBeGreaterThan(isLong / 2);
      expect(joinedChars(group)).toBeLessThan(isLong * 20);
    }
  });
});

function turns(count: number, payload: (i: number) => Facts): readonly Facts[] {
  return Array.from({ length: count }, (_, i) => payload(i));
}
