import type { Draft, Facts } from "@runwire/protocol";
import { expect, test } from "vitest";
import { lookTool } from "../testing/served.js";
import type { Hook, HookAnswer, HookCall } from "./hook.js";
import { runHooks } from "./run-hooks.js";

const call: HookCall = {
  point: "pre_tool_use",
  run_id: "run_1",
  call_id: "call_1",
  tool: lookTool,
  input: { what: "a" },
  workspace: "/",
};

const hook = (name: string, answer: (input: unknown) => HookAnswer): Hook => ({
  name,
  points: ["pre_tool_use"],
  required: true,
  takesTime: false,
  appliesTo: () => true,
  run: async ({ input }) => answer(input),
});

async function looked(...hooks: readonly Hook[]) {
  const facts: Draft[] = [];
  const told = {
    add: (...drafts: readonly Draft[]) => void facts.push(...drafts),
    write: async (...drafts: readonly Draft[]) => void facts.push(...drafts),
    take: () => [],
  };
  const around = { told, monotonic: () => 0, signal: new AbortController().signal };
  const hooked = await runHooks(hooks, call, around);
  const ends = facts.filter(({ type }) => type !== "hook.started");
  return { ...hooked, ends: ends.map(({ type, payload }) => ({ type, ...(payload as Facts) })) };
}

const rule = hook("rule", (input) =>
  (input as Facts).what === "b" ? { kind: "refuse", why: "not b" } : { kind: "go" },
);
const change = hook("change", () => ({ kind: "go", input: { what: "b" } }));

test("a hook sees what those before it made of the input", async () => {
  expect(await looked(change, rule)).toMatchObject({
    refusal: { kind: "denied", why: "not b" },
    ends: [{ outcome: "changed" }, { outcome: "refused" }],
  });
  expect(await looked(rule, change)).toMatchObject({ refusal: null, input: { what: "b" } });
});

test("an input that is too deep for a log is a failure of the hook that gave it", async () => {
  let deep: unknown = "x";
  for (let level = 0; level < 100; level++) deep = [deep];
  const { refusal, input, ends } = await looked(hook("deep", () => ({ kind: "go", input: { deep } })));
  expect(refusal).toMatchObject({ kind: "denied" });
  expect(input).toEqual(call.input);
  expect(ends).toMatchObject([{ type: "hook.failed", reason: "input" }]);
});
