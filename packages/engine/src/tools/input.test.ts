import fc from "fast-check";
import { expect, it } from "vitest";
import { outcomeOf, testContext } from "../testing/context.js";
import { ToolFailure } from "../tool.js";
import { checkedTool, inputCheck } from "./input.js";

const schema = {
  type: "object",
  required: ["path"],
  additionalProperties: false,
  properties: {
    path: { type: "string", minLength: 1 },
    from: { type: "integer", minimum: 1 },
    kind: { enum: ["a", "b"] },
  },
} as const;
const check = inputCheck<{ path: string }>(schema);

it("a tool runs with exactly what fits its schema, and with nothing else", async () => {
  const context = testContext();
  const seen: unknown[] = [];
  const tool = checkedTool({
    name: "t",
    description: "",
    effect: "read-only",
    input_schema: schema,
    run: async (input) => void seen.push(input),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.jsonValue(),
        fc.record({ path: fc.jsonValue(), from: fc.jsonValue() }, { requiredKeys: [] }),
      ),
      async (input) => {
        const { path, from } = (input ?? {}) as { path?: unknown; from?: unknown };
        const fits =
          typeof path === "string" &&
          path !== "" &&
          (from === undefined || (Number.isInteger(from) && (from as number) >= 1)) &&
          Object.keys(input as object).every((key) => ["path", "from"].includes(key));
        seen.length = 0;
        const { kind } = await outcomeOf(tool, input, context);
        expect(kind).toBe(fits ? null : "invalid-input");
        expect(seen).toEqual(fits ? [input] : []);
      },
    ),
  );
  context.remove();
});

it.each([
  [{}, "input must have required property 'path'"],
  [{ path: 3 }, "input.path must be string"],
  [{ path: "a", form: 2 }, 'input has no member "form"'],
  [{ path: "a", from: 0 }, "input.from must be >= 1"],
  [{ path: "a", kind: "c" }, 'input.kind must be one of ["a","b"]'],
  ["a", "input must be object"],
])("the model is told what is wrong with %j", (input, fault) => {
  expect(() => check(input)).toThrow(new ToolFailure("invalid-input", `The input does not fit: ${fault}.`));
});

it("what is wrong in many places is told in a few words", () => {
  const input = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`${i}`.repeat(1000), 1]));
  expect(() => check(input)).toThrow(/; and 996 more\.$/);
  try {
    check(input);
  } catch (error) {
    expect((error as Error).message.length).toBeLessThan(1000);
  }
});
