// A small run that has been, in any dialect.

import { type Dialect, type Draft, type Event, isCore, logWriter } from "@runwire/protocol";

export const sampleRun = "run_01K0000000000000000000000A";

const drafts: readonly Draft[] = [
  { type: "run.lifecycle", payload: { state: "running", reason: null } },
  { type: "turn.submitted", payload: { messages: [{ role: "user", content: "Tidy up" }] } },
  { type: "reasoning.delta", payload: { text: "What is there? " } },
  { type: "text.delta", payload: { text: "Looking « around » " } },
  { type: "tool.call", payload: { call_id: "call_1", tool: "shell", input: { line: "ls" } } },
  {
    type: "approval.requested",
    payload: { approval_id: "call_1", call_id: "call_1", tool: "shell", input: {} },
  },
  { type: "approval.resolved", payload: { approval_id: "call_1", decision: "once" } },
  { type: "tool.start", payload: { call_id: "call_1", tool: "shell", input: { line: "ls" } } },
  { type: "tool.end", payload: { call_id: "call_1", ok: true, output: "a\nb", error: null } },
  { type: "step.boundary", payload: { step_index: 0, step_kind: "tool-roundtrip" } },
  { type: "custom", payload: { value: { deep: [1, [2, { three: null }]] } } },
  { type: "text.delta", payload: { text: "and done." } },
  { type: "step.boundary", payload: { step_index: 1, step_kind: "done" } },
  { type: "usage", payload: { input_tokens: 12, output_tokens: 3 } },
  { type: "message.settled", payload: { text: "Looking around and done." } },
  { type: "run.lifecycle", payload: { state: "done", reason: null } },
];

/** One event a second, and ten minutes before the second step. */
export function sampleEvents(run_id = sampleRun): readonly Event[] {
  let seq = 0;
  return drafts.map((draft, i) => {
    seq += isCore(draft.type) ? 1 : 0;
    const ts = new Date(Date.UTC(2026, 0, 1) + i * 1000 + (i > 10 ? 600_000 : 0)).toISOString();
    const id = `evt_01K000000000000000000000${String(i).padStart(2, "0")}`;
    return { id, ts, run_id, child_id: null, pos: i + 1, seq, type: draft.type, payload: draft.payload };
  });
}

export function sampleLines(dialect: Dialect, run_id?: string): readonly string[] {
  const writer = logWriter(dialect);
  return sampleEvents(run_id).flatMap((e) => writer.say(e).map(({ data }) => data));
}
