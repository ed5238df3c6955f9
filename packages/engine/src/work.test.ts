import type { Event, Facts } from "@runwire/protocol";
import { expect, test } from "vitest";
import { advance, firstWork } from "./work.js";

const folded = (...told: readonly (readonly [type: string, payload: Facts])[]) =>
  told
    .map(([type, payload], i) => ({ type, payload, pos: i + 1, child_id: null }) as unknown as Event)
    .reduce(advance, firstWork);

test.each([
  ["text.delta", { text: "Hm" }],
  ["reasoning.delta", { text: "Hm" }],
  ["tool.args.delta", { call_id: "call_1", tool: "t", text: "{" }],
])("a try after a failed one is unpaid from the first %s on", (type, payload) => {
  const before = [
    ["model.requested", { model: "m", provider: "p" }],
    ["model.failed", {}],
  ] as const;
  expect(folded(...before).unpaid).toBeNull();
  expect(folded(...before, [type, payload]).unpaid).toEqual({ name: "m", provider: "p" });
  expect(folded(...before, [type, payload], ["usage", {}]).unpaid).toBeNull();
});

test("a call goes back to the model as it ran, with the input that somebody gave it", () => {
  const call = { call_id: "call_1", tool: "shell", plan_step: "s1" };
  const { messages } = folded(
    ["model.requested", { model: "m", provider: "p" }],
    ["tool.call", { ...call, input: { command: "rm -rf build" } }],
    ["tool.call", { call_id: "call_2", tool: "look.up", input: { what: "a" } }],
    ["model.completed", { model: "m", carry: ["signed"] }],
    ["tool.start", { call_id: "call_1", tool: "shell", input: { command: "ls build" } }],
    ["tool.end", { call_id: "call_1", ok: true, output: "a b" }],
    ["tool.end", { call_id: "call_2", ok: false, error: { message: "denied" } }],
  );
  expect(messages).toEqual([
    {
      role: "assistant",
      content: "",
      calls: [
        { ...call, input: { command: "ls build" } },
        { call_id: "call_2", tool: "look.up", input: { what: "a" } },
      ],
      carry: ["signed"],
      by: { provider: "p", name: "m" },
    },
    { role: "tool", call_id: "call_1", tool: "shell", ok: true, output: "a b" },
    { role: "tool", call_id: "call_2", tool: "look.up", ok: false, output: { message: "denied" } },
  ]);
});

test.each([
  ["approval", "approval_id", { decision: "deny" }, { decision: "once" }],
  ["clarify", "clarify_id", { answer: "a" }, { answer: "b" }],
] as const)("the first answer to what was asked stands: %s", (kind, id, first, later) => {
  const asked = [
    ["tool.call", { call_id: "call_1", tool: "t", input: {} }],
    [`${kind}.requested`, { [id]: "ask_1", call_id: "call_1" }],
  ] as const;
  const resolved = (answer: Facts) => [`${kind}.resolved`, { [id]: "ask_1", ...answer }] as const;
  const [call] = folded(...asked, resolved(first), resolved(later)).calls;
  expect(call?.[kind === "approval" ? "approval" : "question"]?.resolved).toMatchObject(first);
});
