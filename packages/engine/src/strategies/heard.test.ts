import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { limits } from "../limits.js";
import { candidatesIn, scoresIn, valuesIn } from "./heard.js";

const thoughts = ["Begin with the end", 'Ask "why" [twice]'];
const json = JSON.stringify({ candidates: thoughts });

describe("thoughts are read", () => {
  test.each([
    ["alone", json],
    ["in a fence", `Sure!\n\`\`\`json\n${json}\n\`\`\`\nGood luck.`],
    ["with prose around", `Here they are [as asked for]: ${json} – I hope {that} helps.`],
    ["after a note that is JSON itself", `As in [1] and {}: ${json}`],
    ["as a bare list", JSON.stringify(thoughts)],
    ["under another name", JSON.stringify({ note: "x", ideas: thoughts })],
    ["as objects", JSON.stringify({ candidates: thoughts.map((thought) => ({ thought, why: "…" })) })],
    ["as a numbered list", `My thoughts:\n\n1. ${thoughts[0]}\n2) ${thoughts[1]}\n`],
    ["as a list with marks", `- ${thoughts[0]}\n* ${thoughts[1]}`],
  ])("%s", (_, text) => {
    expect(candidatesIn(text)).toEqual(thoughts);
  });

  test.each(["", "I would rather not.", "{", "[]", '{"candidates": []}', "[1, 2]", '{"a": {"b": 1}}'])(
    "as none in %j",
    (text) => expect(candidatesIn(text)).toEqual([]),
  );

  test("once each, and no more of them than are kept, none longer than is kept", () => {
    const many = JSON.stringify(["a", "a", "😀".repeat(2000), ..."bcdefgh"]);
    const read = candidatesIn(many);
    expect(read).toHaveLength(limits.thoughtsMax);
    expect(new Set(read).size).toBe(read.length);
    expect(Math.max(...read.map((one) => [...one].length))).toBe(limits.thoughtCharsMax);
    expect(read.join()).not.toMatch(/\p{Surrogate}/u);
  });
});

describe("scores are read", () => {
  test.each([
    ["as asked for", '{"scores": [0.8, 0.25]}', [0.8, 0.25]],
    ["counted to ten", "[8, 2.5]", [0.8, 0.25]],
    ["counted to a hundred", '{"scores": ["80%", "25"]}', [0.8, 0.25]],
    ["as objects", '[{"score": 0.8, "why": "x"}, {"score": 0.25}]', [0.8, 0.25]],
    ["as a list", "1. the first: 8/10\n2. the other: 2.5/10", [0.8, 0.25]],
    ["after a note with a number", "As in [1]: [0.8, 0.25]", [0.8, 0.25]],
    ["too few", "[0.8]", [0.8, 0]],
    ["too many", "[0.8, 0.1, 0.9]", [0.8, 0.1]],
    ["out of all bounds", "[-3, 1e300]", [0, 1]],
    ["not at all", "Both are fine.", []],
  ])("%s", (_, text, scores) => {
    expect(scoresIn(text, 2)).toEqual(scores);
  });
});

test("whatever a model writes, reading it ends, and gives what is asked for", () => {
  const pieces = fc.constantFrom(
    "{",
    "[",
    "]",
    "}",
    '"',
    "\\",
    ",",
    ":",
    "1",
    " ",
    "\n",
    "- ",
    "a",
    "```",
    "null",
  );
  const text = fc.oneof(
    fc.array(pieces, { maxLength: 60 }).map((all) => all.join("")),
    fc.json(),
    fc.string({ unit: "binary" }),
  );
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 5 }), (said, count) => {
      valuesIn(said);
      for (const one of candidatesIn(said)) expect(one).toMatch(/^\S.*$/u);
      const scores = scoresIn(said, count);
      expect([0, count]).toContain(scores.length);
      for (const score of scores) expect(score >= 0 && score <= 1).toBe(true);
    }),
  );
  // Not even a text that is made for it takes long.
  const before = process.cpuUsage();
  valuesIn("[".repeat(limits.strategyCharsMax));
  candidatesIn("1. ".repeat(20_000));
  candidatesIn("\n".repeat(limits.strategyCharsMax));
  scoresIn(`- 1${" ".repeat(limits.strategyCharsMax)}x`, 1);
  expect(process.cpuUsage(before).user / 1000).toBeLessThan(2000);
});
