import { describe, expect, it } from "vitest";
import { logReader } from "../../logs.js";
import { loom } from "./loom.js";

function typesByRun(messages: readonly object[]): readonly (readonly string[])[] {
  const reader = logReader(loom);
  const runs = new Map<string, string[]>();
  for (const message of messages)
    for (const { run_id, type } of reader.read(JSON.stringify(message)))
      runs.set(run_id, [...(runs.get(run_id) ?? []), type]);
  return [...runs.values()];
}

describe("a file with several runs", () => {
  it("has another where numbers fall after an end, though its beginning was cut off", () => {
    const messages = [
      { event_id: 1, type: "node_enter", id: "think" },
      { event_id: 5, reply: "one" },
      { event_id: 3, type: "custom", value: 1 },
      { event_id: 4, reply: "two" },
    ];
    expect(typesByRun(messages)).toEqual([
      ["run.lifecycle", "node.enter", "message.settled", "run.lifecycle"],
      ["run.lifecycle", "custom", "message.settled", "run.lifecycle"],
    ]);
  });

  it("has another where each is no more than its reply, but not where the same comes twice", () => {
    const reply = (text: string): object => ({ event_id: 1, reply: text });
    expect(typesByRun([reply("one"), reply("two")])).toHaveLength(2);
    expect(typesByRun([reply("one"), reply("one")])).toHaveLength(1);
  });
});
