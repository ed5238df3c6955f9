import { expect, it } from "vitest";
import type { Draft, Event, Facts } from "../../events.js";
import { loom } from "./loom.js";

it("a call is shown by how its arguments begin where these lie beside the log", () => {
  const preview = '{"command":"rm -rf / # yyy';
  const spilled = { input: { blob_ref: "blob_1", bytes: 70_000, media_type: "application/json", preview } };
  const called = { call_id: "c", tool: "shell", input: {}, spilled };
  const said = saidIn(
    { type: "tool.call", payload: called },
    { type: "approval.requested", payload: { approval_id: "appr_1", ...called } },
    { type: "tool.start", payload: { ...called, call_id: "d" } },
  );
  expect(said.map(({ type, arguments: given }) => [type, given])).toEqual([
    ["tool_call", { _raw: preview }],
    ["tool_approval", { _raw: preview }],
    ["tool_call", { _raw: preview }],
    ["tool_start", undefined],
  ]);
  expect(said.every((message) => "spilled" in message)).toBe(true);
});

it.each([
  ["once", true],
  ["session", true],
  ["always", true],
  ["approve", true],
  ["deny", false],
  ["denied", false],
  ["resolved", false],
])("an approval that is answered %j is told as approved: %j", (decision, approved) => {
  const [, answer] = saidIn(
    {
      type: "approval.requested",
      payload: { approval_id: "appr_1", call_id: "c", tool: "shell", input: {} },
    },
    { type: "approval.resolved", payload: { approval_id: "appr_1", decision } },
  );
  const isPlain = decision === "once" || decision === "deny";
  const said = { type: "tool_approval_response", call_id: "c", approved };
  expect(answer).toMatchObject(isPlain ? said : { ...said, decision });
  expect(isPlain && "decision" in answer!).toBe(false);
});

it.each(["deny", "yes", 1])(
  "an answer is read by `approved`, whatever decision %j stands beside it",
  (decision) => {
    const asked = { type: "tool_approval", call_id: "c", name: "shell", arguments: {} };
    const answer = { type: "tool_approval_response", call_id: "c", approved: true, decision };
    const { decode } = loom.decoder();
    const drafts = [asked, answer].flatMap((message) => decode({ data: JSON.stringify(message) }));
    expect(drafts.at(-1)?.payload).toMatchObject({ decision: "once" });
    expect(saidIn(...drafts).at(-1)).toMatchObject(answer);
  },
);

function saidIn(...drafts: readonly Draft[]): readonly Facts[] {
  let state = loom.first;
  return drafts.flatMap((draft, i) => {
    const numbers = { id: `evt_${i}`, ts: "2026-01-01T00:00:00.000Z", pos: i + 1, seq: i + 1 };
    const e = { run_id: "run_1", child_id: null, ...numbers, ...draft } as Event;
    const [next, messages] = loom.step(state, e);
    state = next;
    return messages.map(({ data }) => JSON.parse(data) as Facts);
  });
}
