// PROTOCOL.md and the tests hold each other to account: every rule `[RW-XXX-N]` is cited by a test, in a title
// or a comment, and every citation names a rule.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { eventTypes, factFamilies, mayMove, runStates } from "@runwire/protocol";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const protocol = readFileSync(join(root, "PROTOCOL.md"), "utf8");
const ruleId = /\[RW-[A-Z0-9]+-\d+\]/g;

/** A rule is made where a list item begins with its id in bold; elsewhere an id is a mention. */
const rules = [...protocol.matchAll(/^- \*\*(\[RW-[A-Z0-9]+-\d+\])\*\* /gm)].map((match) => match[1] ?? "");
const citations = testFiles().flatMap((file) =>
  [...readFileSync(join(root, file), "utf8").matchAll(ruleId)].map(([rule]) => ({ rule, file })),
);

describe("PROTOCOL.md", () => {
  it("has rules, each with an id of its own, counted from 1 in its section", () => {
    expect(rules.length).toBeGreaterThan(0);
    expect(rules.filter((rule, i) => rules.indexOf(rule) !== i)).toEqual([]);
    const areas = new Set(rules.map(areaOf));
    for (const area of areas) {
      const ofArea = rules.filter((rule) => areaOf(rule) === area);
      expect(ofArea).toEqual(ofArea.map((_, i) => `[RW-${area}-${i + 1}]`));
    }
  });

  it("has no rule without a test", () => {
    const cited = new Set(citations.map(({ rule }) => rule));
    expect(rules.filter((rule) => !cited.has(rule))).toEqual([]);
  });

  it("has every rule that a test cites and every rule it mentions itself", () => {
    const unknown = citations.filter(({ rule }) => !rules.includes(rule));
    expect(unknown.map(({ rule, file }) => `${rule} in ${file}`)).toEqual([]);
    expect((protocol.match(ruleId) ?? []).filter((rule) => !rules.includes(rule))).toEqual([]);
  });

  it("lists every type with its members as the program checks them [RW-TYPE-6]", () => {
    const rows = [
      ...protocol.matchAll(/^\| `([a-z_.]+)` \| (core|extended) \| (control|delta) \| (.+) \|$/gm),
    ];
    const listed = rows.map(([, type, part, flow, members]) => [type, part, flow, members]);
    const known = Object.entries(eventTypes).filter(([, row]) => Object.keys(row.members).length > 0);
    expect(listed).toEqual(
      known.map(([type, { core, flow, members }]) => [
        type,
        core ? "core" : "extended",
        flow === "control" ? "control" : "delta",
        Object.entries(members).map(memberText).join(", "),
      ]),
    );
    const bare = Object.entries(eventTypes).filter(([, row]) => Object.keys(row.members).length === 0);
    expect(codesOf("These types have no member that is checked")).toEqual(bare.map(([type]) => type));
    expect(codesOf("The families are")).toEqual([...factFamilies]);
  });

  it("lists the changes of state as the program allows them [RW-STATE-1]", () => {
    const rows = [...protocol.matchAll(/^\| `([a-z_]+)` \| ((?:`[a-z_]+`(?:, )?)+) \|$/gm)];
    const listed = rows.map(([, from, to = ""]) => [from, to.replaceAll("`", "").split(", ").sort()]);
    const known = runStates.map((from) => [from, runStates.filter((to) => mayMove(from, to)).sort()]);
    expect(listed).toEqual(known.filter(([, to]) => to?.length !== 0));
  });
});

function memberText([name, kind]: [string, string]): string {
  const optional = kind.endsWith("?");
  const takes = (optional ? kind.slice(0, -1) : kind).replaceAll("|", "\\|");
  return `\`${name}${optional ? "?" : ""}: ${takes}\``;
}

/** What stands in code type in the paragraph that begins so. */
function codesOf(beginning: string): readonly string[] {
  const paragraph = protocol.split("\n\n").find((text) => text.startsWith(beginning)) ?? "";
  return [...paragraph.matchAll(/`([^`]+)`/g)].map(([, code]) => code ?? "");
}

function areaOf(rule: string): string {
  return rule.split("-")[1] ?? "";
}

function testFiles(): readonly string[] {
  return readdirSync(join(root, "packages"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) =>
      readdirSync(join(root, "packages", name, "src"), { recursive: true })
        .map(String)
        // A suite is a test that each implementation runs from a test file of its own.
        .filter((file) => /\.test\.tsx?$|^suites\/.*\.ts$/.test(file))
        .map((file) => join("packages", name, "src", file)),
    );
}
