import type { Facts } from "@runwire/protocol";
import { expect, it } from "vitest";
import { ToolFailure } from "../tool.js";
import { checkForeign } from "./foreign-input.js";

const schema: Facts = {
  type: "object",
  properties: {
    path: { type: "string", pattern: "^(a+)+$" },
    mode: { enum: ["r", "w"] },
    count: { type: ["integer", "null"] },
    tags: { type: "array", items: { type: "string" } },
    odd: { $ref: "#/nowhere" },
  },
  required: ["path"],
  additionalProperties: false,
};

it.each<readonly [unknown, string]>([
  [null, "input must be object"],
  [{}, "input must have required property 'path'"],
  [{ path: 1 }, "input.path must be string"],
  [{ path: "a", mode: "x" }, 'input.mode must be one of ["r","w"]'],
  [{ path: "a", count: 1.5 }, "input.count must be integer or null"],
  [{ path: "a", tags: ["a", 2] }, "input.tags.1 must be string"],
  [{ path: "a", more: 1 }, 'input has no member "more"'],
])("%j does not fit, and what is wrong is named", (input, says) => {
  const refusal = (() => {
    try {
      checkForeign(schema, input);
      return undefined;
    } catch (error) {
      return error;
    }
  })();
  expect(refusal).toBeInstanceOf(ToolFailure);
  expect(refusal).toMatchObject({ kind: "invalid-input", message: expect.stringContaining(says) });
});

it("what only the server can judge is left to it, and no pattern of its is run", () => {
  const before = process.cpuUsage();
  checkForeign(schema, { path: `${"a".repeat(40)}!`, mode: "r", count: null, tags: [], odd: { any: 1 } });
  for (const odd of [{}, { type: "frob" }, { type: 1, properties: [], required: "x", enum: {} }])
    checkForeign(odd as Facts, { x: 1 });
  expect(process.cpuUsage(before).user / 1000).toBeLessThan(1000);
});
