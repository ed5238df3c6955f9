import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { validatorOf } from "../../validate.js";
import { koder } from "../koder.js";
import { loom } from "./loom.js";
import { loomRules } from "./validate.js";

function rulesBroken(...lines: readonly unknown[]): readonly string[] {
  const validator = validatorOf(loom);
  const found = lines.flatMap((line, i) =>
    validator
      .check(typeof line === "string" ? line : JSON.stringify(line))
      .map(({ rule }) => `${i + 1} ${rule}`),
  );
  return [...found, ...validator.end().map(({ rule }) => `end ${rule}`)];
}

const reply = { reply: "ok" };

describe("a validator of Loom", () => {
  it.each(["loom-examples", "loom-words", "run.loom"])("finds nothing wrong with %s", (name) => {
    const path = new URL(`../../../fixtures/${name}.jsonl`, import.meta.url);
    expect(rulesBroken(...readFileSync(path, "utf8").trimEnd().split("\n"))).toEqual([]);
  });

  it.each([
    ["LOOM-JSON", ["{", reply], ["1 LOOM-JSON"]],
    ["LOOM-JSON", ["[]", reply], ["1 LOOM-JSON"]],
    ["LOOM-TYPE", [{ kind: "x" }, reply], ["1 LOOM-TYPE"]],
    ["LOOM-TYPE", [{ type: "" }, { type: "Not a word" }, reply], ["1 LOOM-TYPE", "2 LOOM-TYPE"]],
    ["LOOM-MEMBER", [{ type: "node_enter" }, reply], ["1 LOOM-MEMBER"]],
    ["LOOM-ENVELOPE", [{ type: "custom", value: 1, event_id: "1" }, reply], ["1 LOOM-ENVELOPE"]],
    [
      "LOOM-ORDER",
      [
        { type: "custom", value: 1, event_id: 3 },
        { ...reply, event_id: 3 },
      ],
      ["2 LOOM-ORDER"],
    ],
    [
      "LOOM-SESSION",
      [
        { type: "custom", value: 1, session_id: "a" },
        { ...reply, session_id: "b" },
      ],
      ["2 LOOM-SESSION"],
    ],
    ["LOOM-SPAN", [{ type: "node_exit", id: "a", result: "Ok" }, reply], ["1 LOOM-SPAN"]],
    ["LOOM-SPAN", [{ type: "node_enter", id: "a" }, reply], ["2 LOOM-SPAN"]],
    ["LOOM-END", [reply, { type: "custom", value: 1 }], ["2 LOOM-END"]],
    ["LOOM-END", [{ type: "custom", value: 1 }], ["end LOOM-END"]],
    ["LOOM-END", [{ type: "run_start" }, { type: "run_start" }, reply], ["2 LOOM-END"]],
  ])("names %s where it is broken", (rule, lines, broken) => {
    expect(Object.keys(loomRules)).toContain(rule);
    expect(rulesBroken(...lines)).toEqual(broken);
  });

  it("takes several runs, one after the other", () => {
    expect(
      rulesBroken(
        { type: "run_start", event_id: 1 },
        { ...reply, event_id: 2 },
        { type: "run_start", event_id: 1 },
        { ...reply, event_id: 2 },
      ),
    ).toEqual([]);
  });
});

describe("a validator of any other dialect", () => {
  it("names what its decoder refuses, and numbers that go back", () => {
    const validator = validatorOf(koder);
    const line = (seq: number): string =>
      JSON.stringify({
        id: "evt_1",
        ts: "2026-01-01T00:00:00Z",
        type: "text.delta",
        run_id: "run_1",
        seq,
        payload: { text: "" },
      });
    expect(validator.check(line(2))).toEqual([]);
    expect(validator.check(line(2)).map(({ rule }) => rule)).toEqual(["RW-CURSOR-1"]);
    expect(validator.check("{").map(({ rule }) => rule)).toEqual(["KAI-STREAM-PROTO-0001"]);
    expect(validator.check('{"type":"x"}').map(({ rule }) => rule)).toEqual(["KAI-STREAM-PROTO-0002"]);
  });
});
