import { expect, test } from "vitest";
import { followAsked } from "./asked.js";
import { numbered } from "./testing/log.js";
import { after, messagesOf, scriptedSource } from "./testing/scripted-source.js";

test("a producer hears what is asked of its run, and nothing it said itself", async () => {
  const log = numbered([
    { type: "run.lifecycle", payload: { state: "running" } },
    { type: "text.delta", payload: { text: "working" } },
    { type: "steer.accepted", payload: { text: "shorter" } },
    { type: "control.requested", payload: { action: "redirect", instruction: "stop that" } },
    { type: "approval.resolved", payload: { approval_id: "a", decision: "once" } },
    { type: "run.lifecycle", payload: { state: "aborted" } },
  ]);
  const heard: string[] = [];
  const source = scriptedSource([(at) => ({ batches: [messagesOf(after(log, at))] })]);
  for await (const { type } of followAsked(source)) heard.push(type);
  expect(heard).toEqual([
    "run.lifecycle",
    "steer.accepted",
    "control.requested",
    "approval.resolved",
    "run.lifecycle",
  ]);
});
