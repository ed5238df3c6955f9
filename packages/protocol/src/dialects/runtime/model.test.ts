import { describe, expect, it } from "vitest";
import { runtimeReader } from "./reader.js";

describe("a model", () => {
  it("keeps the calls, actions and processes of each run apart, whatever ids they have [RW-RUNTIME-10]", () => {
    const reader = runtimeReader();
    const child = { childId: "run_c", subagentId: "run_c" };
    for (const [i, [type, ids]] of [
      ["tool.failed", { toolCallId: "1" }],
      ["tool.result", { toolCallId: "1", ...child }],
      ["action.required", { actionId: "1" }],
      ["action.required", { actionId: "1", ...child }],
      ["action.resolved", { actionId: "1", ...child }],
      ["process.started", { processId: "1" }],
      ["process.failed", { processId: "1", ...child }],
    ].entries()) {
      const sequence = i + 1;
      const message = { type, eventId: `e${sequence}`, timestamp: "2026-01-01T00:00:00Z", sequence };
      reader.read({ ...message, ...(ids as object) });
    }
    expect(reader.model).toMatchObject({
      toolCalls: { 1: { status: "failed" }, "run_c/1": { status: "completed", toolCallId: "1" } },
      actions: { 1: { status: "required" }, "run_c/1": { status: "resolved" } },
      processes: { 1: { status: "running" }, "run_c/1": { status: "failed" } },
    });
    const call = { toolCallId: "1", status: "completed" };
    const threads = [{ threadId: "t", status: "running", toolCalls: [{ ...call, ...child }] }];
    reader.read({
      ...{ type: "snapshot.updated", eventId: "e8", timestamp: "2026-01-01T00:00:00Z", sequence: 7 },
      payload: { snapshot: { lastSequence: 7, threads } },
    });
    expect(reader.model.toolCalls).toMatchObject({
      1: { status: "failed", stale: true },
      "run_c/1": { status: "completed" },
    });
  });
});
