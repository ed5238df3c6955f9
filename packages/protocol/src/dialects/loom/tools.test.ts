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
