import type { Event, PlanStep } from "@runwire/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { estimate, type StepCost, stepCostsOf } from "./estimates.js";
import type { Model } from "./model.js";

const model = { provider: "openai", name: "gpt-5" } as Model;
const steps: readonly PlanStep[] = [
  { id: "s1", title: "Look", intent: "research", est_tools: ["web.fetch"] },
  { id: "s2", title: "Write", intent: "write", est_tools: [] },
];

const event = (type: string, payload: object, child_id: string | null = null): Event =>
  ({ type, payload, child_id }) as unknown as Event;
const plan = event("plan.proposal", { plan: { id: "plan_1", steps } });
const used = (cost_usd: number | undefined, child_id: string | null = null): Event =>
  event("usage", { model: "gpt-5", provider: "openai", requests: 1, cost_usd }, child_id);
const call = (call_id: string, plan_step?: string): Event => event("tool.call", { call_id, plan_step });
const spawn = (call_id: string, child: string, by: string | null = null): Event =>
  event("child.spawn", { call_id, child_id: child }, by);

const costs = (...events: readonly Event[]): readonly number[] =>
  stepCostsOf(events).map(({ cost_usd }) => cost_usd);

describe("what a step has cost", () => {
  test("is what the answers cost whose calls were for it", () => {
    expect(costs(used(9), plan, call("a", "s1"), used(1), call("b", "s2"), used(2))).toEqual([1, 2]);
  });

  test("is its part of an answer that was for no step, or for several", () => {
    expect(costs(plan, used(4), call("a", "s1"), call("b", "s2"), used(1), call("c"), used(2))).toEqual([
      3.5, 3.5,
    ]);
  });

  test("is what the children cost, and theirs, that it spawned", () => {
    const family = [spawn("a", "run_1"), spawn("x", "run_2", "run_1"), used(5, "run_1"), used(6, "run_2")];
    expect(costs(plan, call("a", "s2"), used(1), ...family)).toEqual([0, 12]);
  });

  test("is without what came before the plan and after the message", () => {
    expect(costs(used(7), plan, used(2), event("message.settled", { text: "" }), used(8))).toEqual([1, 1]);
  });

  test("is not known where something had no price", () => {
    expect(costs(plan, used(1), used(undefined))).toEqual([]);
  });

  test("is that of the plan that people approved", () => {
    const steps = [{ id: "s9", title: "Only this" }];
    const edited = event("control.requested", { action: "approve_plan", steps });
    expect(costs(plan, edited, used(3))).toEqual([3]);
  });

  test("is known in a moment of a run of many calls, children and answers", () => {
    const many = <T>(length: number, of: (i: number) => T): readonly T[] =>
      Array.from({ length }, (_, i) => of(i));
    const steps = many(2000, (i) => ({ id: `s${i}`, title: "One" }));
    const events = [
      event("plan.proposal", { plan: { id: "plan_1", steps } }),
      ...many(10_000, (i) => call(`c${i}`, `s${i % 2000}`)),
      ...many(5000, (i) => spawn(`c${i}`, `run_${i}`)),
      ...many(5000, () => used(2)),
    ];
    const before = process.cpuUsage();
    expect(costs(...events)).toHaveLength(2000);
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(1000);
  });

  test("is each plan's own where another takes its place", () => {
    const other = event("plan.proposal", {
      plan: { id: "plan_2", steps: [steps[1], { id: "s3", title: "Third" }] },
    });
    expect(costs(plan, used(4), other, used(2))).toEqual([3, 1]);
  });

  test("adds up to what the run has cost, whatever its calls say they were for", () => {
    const part = fc.oneof(
      fc.constantFrom("s1", "s2", undefined).map((step) => call("a", step)),
      fc
        .tuple(fc.double({ min: 0, max: 9, noNaN: true }), fc.constantFrom(null, "run_1", "run_2"))
        .map(([usd, by]) => used(usd, by)),
      fc.constantFrom("run_1", "run_2").map((child) => spawn("a", child)),
    );
    fc.assert(
      fc.property(fc.array(part), (events) => {
        const paid = events.flatMap(({ payload }) => {
          const { cost_usd } = payload as { readonly cost_usd?: number };
          return cost_usd === undefined ? [] : [cost_usd];
        });
        const total = costs(plan, used(0), ...events).reduce((sum, usd) => sum + usd, 0);
        expect(total).toBeCloseTo(
          paid.reduce((sum, usd) => sum + usd, 0),
          6,
        );
      }),
    );
  });
});

describe("an estimate", () => {
  const known = (
    intent: PlanStep["intent"],
    tools: string,
    cost_usd: number,
    of = "openai/gpt-5",
  ): StepCost => ({
    ...(intent === undefined ? {} : { intent }),
    model: of,
    tools,
    cost_usd,
  });
  const [look] = steps as readonly [PlanStep];

  test("is the mean of what was most like it, with the same model", () => {
    const others = [known("research", "web.fetch", 100, "openai/gpt-4o"), known("write", "", 50)];
    expect(estimate(look, model, others)).toBe(50);
    const alike = [...others, known("research", "shell", 8), known("research", "", 4)];
    expect(estimate(look, model, alike)).toBe(6);
    expect(
      estimate(look, model, [...alike, known("research", "web.fetch", 1), known("research", "web.fetch", 2)]),
    ).toBe(1.5);
  });

  test("is that of usual answers before anything is known, and none without a price", () => {
    const first = estimate(look, model, []);
    expect(first).toBeGreaterThan(0);
    expect(estimate({ ...look, est_tools: [] }, model, [])).toBeCloseTo((first ?? 0) / 2);
    expect(estimate(look, { ...model, name: "gpt-99" }, [])).toBeNull();
    expect(estimate(look, { ...model, provider: "local" }, [])).toBe(0);
  });
});
