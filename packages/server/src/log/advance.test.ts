import type { EventType, Facts } from "@runwire/protocol";
import { newFold } from "@runwire/protocol";
import { expect, it } from "vitest";
import { advance } from "./advance.js";
import { feedHead, type Head } from "./head.js";
import type { Record } from "./record.js";

const run_id = "run_a";

/** A head after some events of its run. */
function headAfter(events: readonly (readonly [EventType, Facts])[]): Head {
  const mine = newFold();
  let head = feedHead("acme", run_id);
  for (const [i, [type, payload]] of events.entries()) {
    const pos = i + 1;
    const place = { log: run_id, defaultPos: pos, defaultSeq: pos, fullPos: pos, fullSeq: pos };
    const record = { id: `evt_${pos}`, ts: "2026-01-01T00:00:00.000Z", type, by: run_id, producer: null };
    head = advance(head, record as Record, place, () => payload, mine);
  }
  return head;
}

it("a head stays small, however much its run has used and was answered", () => {
  const events: (readonly [EventType, Facts])[] = [];
  for (let i = 0; i < 20; i++) {
    const long = String(i).repeat(60_000);
    events.push(["usage", { [long]: 1, tokens: 1 }]);
    events.push(["clarify.requested", { clarify_id: `clar_${i}`, question: "which?" }]);
    events.push(["clarify.resolved", { clarify_id: `clar_${i}`, answer: long, outcome: "answered" }]);
    events.push(["approval.requested", { approval_id: `appr_${i}` }]);
    events.push(["approval.resolved", { approval_id: `appr_${i}`, decision: long, input: { long } }]);
    events.push(["run.lifecycle", { state: "paused", reason: long }]);
    if (i % 2 === 0) events.push(["control.requested", { action: "pause", reason: long }]);
  }
  const head = headAfter(events);
  expect(head.usage.tokens).toBe(20);
  expect(JSON.stringify(head).length).toBeLessThan(20_000);
});

it("what a run was asked and of which model is shown until it is asked something else", () => {
  const asked = { model: "m", messages: [{ role: "user", content: "go" }] };
  const shown = ({ model, prompt_preview }: Head) => [model, prompt_preview];
  const again = (payload: Facts) =>
    headAfter([
      ["turn.submitted", asked],
      ["turn.submitted", payload],
    ]);
  const unknown = [{ role: "user", content: null, parts: [] }];
  for (const nothing of [{ turn_id: "turn_2" }, { messages: unknown }])
    expect(shown(again(nothing))).toEqual(["m", "go"]);
  for (const next of [
    { messages: [{ role: "user", content: "stop" }] },
    { prompt: "stop" },
    { message: "stop" },
  ])
    expect(shown(again(next))).toEqual(["m", "stop"]);
});
