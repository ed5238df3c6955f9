import { parseDraft } from "@runwire/protocol";
import fc from "fast-check";
import { expect, test } from "vitest";
import { limits } from "./limits.js";
import { planSteps } from "./plan-steps.js";

test("whatever a model proposes, the plan is one that readers take, and each step has an id of its own", () => {
  const step = fc.record(
    {
      id: fc.oneof(fc.constantFrom("s1", "s2", "Step 1", ""), fc.jsonValue()),
      title: fc.oneof(fc.string(), fc.jsonValue()),
      intent: fc.jsonValue(),
      est_tools: fc.jsonValue(),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof(fc.array(fc.oneof(step, fc.jsonValue())), fc.jsonValue()), (given) => {
      const steps = planSteps(given);
      expect(new Set(steps.map(({ id }) => id)).size).toBe(steps.length);
      const plan = { id: "plan_1", steps };
      expect(() => parseDraft({ type: "plan.proposal", payload: { plan } })).not.toThrow();
    }),
  );
});

test("an id of the model's is kept where it is one", () => {
  const ids = ["Step 1", "s1", "_x", "look", "look", 7].map((id) => ({ id, title: "a" }));
  expect(planSteps(ids).map(({ id }) => id)).toEqual(["s2", "s1", "s3", "look", "s5", "s6"]);
});

test("a plan has no more steps than a person may send back", () => {
  const many = Array.from({ length: 5000 }, () => ({ title: "a" }));
  expect(planSteps(many)).toHaveLength(limits.planStepsMax);
});
