import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Tool } from "../tool.js";
import { toolbox } from "./toolbox.js";

const tool = (name: string, skill_id?: string): Tool => ({
  name,
  description: `does ${name}`,
  effect: "read-only",
  input_schema: { type: "object" },
  run: async () => name,
  ...(skill_id === undefined ? {} : { skill_id }),
});
const all = ["web.fetch", "file.write", "file.read", "shell", "filesystem.read", "file"].map((name) =>
  tool(name),
);

describe("a run's toolbox", () => {
  it("gives the model the same specs in the same order, however the tools come", () => {
    fc.assert(
      fc.property(fc.shuffledSubarray(all, { minLength: all.length }), (tools) => {
        expect(toolbox({ tools }).specs).toEqual(toolbox({ tools: all }).specs);
      }),
    );
    expect(Object.keys(toolbox({ tools: all }).specs[0]!)).toEqual(["name", "description", "input_schema"]);
  });

  it("finds exactly what the model is told of, and names the rest as unknown or not allowed", () => {
    const patterns = fc.constantFrom(
      "*",
      "file.*",
      "file",
      "shell",
      "web.*",
      "w*",
      "*.read",
      "",
      ".*",
      "file.**",
      "FILE.*",
    );
    const names = fc.constantFrom(
      ...all.map(({ name }) => name),
      "nothing",
      "file.",
      "constructor",
      "__proto__",
    );
    fc.assert(
      fc.property(fc.array(patterns), names, (allowed, name) => {
        const box = toolbox({ tools: all, allowed: [allowed] });
        if (box.specs.some((spec) => spec.name === name)) expect(box.find(name).name).toBe(name);
        else {
          const kind = all.some((known) => known.name === name) ? "tool-not-allowed" : "unknown-tool";
          expect(() => box.find(name)).toThrow(expect.objectContaining({ kind }));
        }
      }),
    );
  });

  it.each([
    [["file.*"], ["file.read", "file.write"]],
    [
      ["file.read", "shell"],
      ["file.read", "shell"],
    ],
    [["*"], all.map(({ name }) => name).sort()],
    [["*.read", "fi*", "file.**"], []],
    [[], []],
  ])("with %j allowed it holds %j", (allowed, names) => {
    expect(toolbox({ tools: all, allowed: [allowed] }).tools.map(({ name }) => name)).toEqual(names);
  });

  it("holds everything when nothing is said about what is allowed", () => {
    expect(toolbox({ tools: all }).tools).toHaveLength(all.length);
  });

  it("keeps the skill that a tool came with", () => {
    expect(toolbox({ tools: [tool("a", "pdf@2")] }).find("a").skill_id).toBe("pdf@2");
  });

  it("does not take two tools of one name", () => {
    expect(() => toolbox({ tools: [tool("a"), tool("a")] })).toThrow("two tools are named a");
  });
});
