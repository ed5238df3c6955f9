// A receiver of Loom hears the same run, however often and in whatever order its messages come.

import { readFileSync } from "node:fs";
import { type LoomRun, loom, loomReader } from "@runwire/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { arbitraryRun, eventsOf } from "../arbitrary-runs.js";

/** What a server says of any run. */
const arbitraryLines: fc.Arbitrary<readonly string[]> = arbitraryRun().map(({ run_id, drafts }) => {
  let state = loom.first;
  return eventsOf(run_id, drafts).flatMap((e) => {
    const [next, said] = loom.step(state, e);
    state = next;
    return said.map(({ data }) => data);
  });
});

function runsOf(lines: readonly string[]): readonly LoomRun[] {
  const reader = loomReader();
  for (const line of lines) reader.read(line);
  reader.end();
  expect(reader.problems).toEqual([]);
  return reader.runs;
}

describe("a reader of Loom", () => {
  it("hears what was said once and in order, though it comes twice and mixed up [RW-LOOM-6]", () => {
    fc.assert(
      fc.property(arbitraryLines, fc.infiniteStream(fc.nat(30)), (lines, luck) => {
        const next = (): number => luck.next().value as number;
        // Each comes up to thirty places late, the first before the last, and some come again.
        const late = lines.map((line, i) => ({ line, at: i + next() }));
        const [first, last] = [late[0]?.at ?? 0, late.pop() ?? { line: "", at: 0 }];
        const mixed = [...late, { ...last, at: Math.max(last.at, first + 0.5) }]
          .toSorted((a, b) => a.at - b.at)
          .flatMap(({ line }) => (next() < 5 ? [line, line] : [line]));
        expect(runsOf(mixed)).toEqual(runsOf(lines));
      }),
      { numRuns: 100 },
    );
  });

  it("hears the same where a connection was cut and some is said again [RW-LOOM-6]", () => {
    fc.assert(
      fc.property(arbitraryLines, fc.nat(), fc.nat(20), (lines, cut, again) => {
        const at = cut % (lines.length + 1);
        const resumed = [...lines.slice(0, at), ...lines.slice(Math.max(0, at - again))];
        expect(runsOf(resumed)).toEqual(runsOf(lines));
      }),
      { numRuns: 100 },
    );
  });

  it("takes streams without an envelope as they come, and tells runs apart [RW-LOOM-6]", () => {
    const bare = (text: string): readonly string[] =>
      [
        { type: "run_start", message: text },
        { type: "node_enter", id: "think" },
        { type: "message_chunk", content: text, id: "think" },
        { type: "node_exit", id: "think", result: "Ok" },
        { reply: text.toUpperCase() },
      ].map((message) => JSON.stringify(message));
    expect(runsOf([...bare("one"), ...bare("two")])).toMatchObject(
      ["one", "two"].map((text) => ({
        message: text,
        state: "done",
        reply: text.toUpperCase(),
        nodes: [{ id: "think", text, result: "Ok" }],
      })),
    );
  });

  it("takes what has no number for another run's, once one has ended [RW-LOOM-6]", () => {
    const bare = ["one", "two"].flatMap((word) => [
      { type: "message_chunk", content: word, id: "think" },
      { reply: word },
      { type: "pong" },
    ]);
    const lines = bare.map((message) => JSON.stringify(message));
    const told = ["one", "two"].map((text) => ({ state: "done", reply: text, nodes: [{ text }] }));
    expect(runsOf(lines)).toMatchObject(told);
    expect(runsOf([...linesOfRun("a"), ...lines])).toMatchObject([{ reply: "a" }, ...told]);
    expect(runsOf([...lines, ...linesOfRun("a")])).toMatchObject([...told, { reply: "a" }]);
  });

  it("tells a run that begins as the one before did from what only comes again [RW-LOOM-6]", () => {
    const a = linesOfRun("a");
    const other = (event_id: number, content: string): string =>
      JSON.stringify({ event_id, type: "message_chunk", content, id: "think" });
    const alike = [...a.slice(0, 3), other(4, "b4"), JSON.stringify({ event_id: 5, reply: "b" })];
    const told = [
      { message: "a", reply: "a", nodes: [{ text: "a2a3a4" }] },
      { message: "a", reply: "b", nodes: [{ text: "a2a3b4" }] },
    ];
    expect(runsOf([...a, ...alike])).toMatchObject(told);
    expect(runsOf([...a, ...a, ...alike.flatMap((line) => [line, line])])).toMatchObject(told);
    // What comes again of the first is not taken for the beginning of one that begins otherwise.
    expect(runsOf([...a, ...a.slice(0, 3), ...linesOfRun("b")])).toMatchObject([
      { message: "a", nodes: [{ text: "a2a3a4" }] },
      { message: "b", nodes: [{ text: "b2b3b4" }] },
    ]);
    expect(runsOf([...a, ...a.slice(0, 3)])).toHaveLength(1);
  });

  it("keeps nodes apart whose names or ids come again, and calls by their ids [RW-LOOM-6]", () => {
    const path = new URL("../../../protocol/fixtures/loom-words.jsonl", import.meta.url);
    const [run] = runsOf(readFileSync(path, "utf8").trimEnd().split("\n"));
    expect(run).toMatchObject({
      state: "failed",
      error: "nothing to merge",
      nodes: [
        { id: "think", thought: "Three parts. ", text: "I'll sort ", result: "Ok" },
        { id: "act", result: { Err: "it took too long" } },
      ],
      calls: [{ call_id: "call-1", output: "sorting\n", status: "done", result: "[1,2,3]" }],
      usage: { prompt_tokens: 100, completion_tokens: 62 },
    });
  });

  it("keeps calls of one tool apart that have no id [RW-LOOM-6]", () => {
    const about = (type: string, members: object): string => JSON.stringify({ type, name: "sh", ...members });
    const [run] = runsOf([
      about("tool_call", { arguments: { n: "A" } }),
      about("tool_call", { arguments: { n: "B" } }),
      ...["A", "B"].flatMap((n) => [
        about("tool_start", {}),
        about("tool_output", { content: `${n}..` }),
        about("tool_end", { result: n, is_error: false }),
      ]),
    ]);
    expect(run?.calls).toMatchObject(
      ["A", "B"].map((n) => ({ arguments: { n }, output: `${n}..`, status: "done", result: n })),
    );
  });

  it("takes a stream from the middle of a run on for what it is, and the next run for itself [RW-LOOM-6]", () => {
    const run = linesOfRun("a");
    expect(runsOf([...run.slice(2), ...run])).toMatchObject([
      { state: "done", nodes: [{ text: "a3a4" }] },
      { state: "done", nodes: [{ text: "a2a3a4" }] },
    ]);
    expect(runsOf(run.slice(2, -1))).toMatchObject([{ state: "running", nodes: [{ text: "a3a4" }] }]);
  });

  it("takes what is left of a run for one of its own, where the next begins [RW-LOOM-6]", () => {
    const [a, b] = [linesOfRun("a"), linesOfRun("b")];
    const whole = { message: "b", state: "done", nodes: [{ text: "b2b3b4" }] };
    expect(runsOf([...a.slice(2, -1), ...b])).toMatchObject([
      { state: "running", nodes: [{ text: "a3a4" }] },
      whole,
    ]);
    // Neither has its beginning, or its end has no number, or the next is over before it got that far.
    expect(runsOf([...a.slice(1, -1), ...b.slice(2)])).toMatchObject([
      { state: "running", nodes: [{ text: "a2a3a4" }] },
      { state: "done", nodes: [{ text: "b3b4" }] },
    ]);
    expect(runsOf([...a.slice(2, -1), JSON.stringify({ reply: "a" }), ...b])).toMatchObject([
      { state: "done", nodes: [{ text: "a3a4" }] },
      whole,
    ]);
    const late = { event_id: 57, type: "message_chunk", content: "a57", id: "think" };
    expect(runsOf([JSON.stringify(late), ...b])).toMatchObject([
      { state: "running", nodes: [{ text: "a57" }] },
      whole,
    ]);
    expect(runsOf([...a.slice(2, -1), ...b.slice(0, 2)])).toMatchObject([
      { state: "running", nodes: [{ text: "a3a4" }] },
      { message: "b", state: "running", nodes: [{ text: "b2" }] },
    ]);
  });

  it("shows at once what comes from the middle of a run on, and puts in order what belongs before it [RW-LOOM-6]", () => {
    const reader = loomReader();
    const ask = { event_id: 58, type: "tool_approval", call_id: "c", name: "rm", arguments: {} };
    reader.read(JSON.stringify(ask));
    expect(reader.runs).toMatchObject([{ calls: [{ call_id: "c", status: "waiting" }] }]);
    const call = { event_id: 57, type: "tool_call", call_id: "c", name: "rm", arguments: { path: "a" } };
    reader.read(JSON.stringify(call));
    expect(reader.runs).toMatchObject([{ calls: [{ arguments: {}, status: "waiting" }] }]);
    expect(reader.end()).toEqual([call, ask]);
    const swapped = loomReader();
    const [first = "", second = ""] = linesOfRun("a");
    for (const line of [second, first]) swapped.read(line);
    expect(swapped.runs).toMatchObject([{ message: "a", nodes: [{ text: "a2" }] }]);
  });

  it("lets what is live wait for what was, in each run [RW-LOOM-6]", () => {
    const mixed = ["a", "b"].map(linesOfRun).flatMap((run) => [...run.slice(2, 3), ...run]);
    expect(runsOf(mixed)).toMatchObject([
      { message: "a", state: "done", nodes: [{ text: "a2a3a4" }] },
      { message: "b", state: "done", nodes: [{ text: "b2b3b4" }] },
    ]);
  });

  it("tells what is no JSON, and what comes again as something else, and goes on [RW-LOOM-6]", () => {
    const reader = loomReader();
    const say = (event_id: number, value: number): unknown =>
      reader.read(JSON.stringify({ event_id, type: "custom", value }));
    say(1, 1);
    reader.read("{");
    say(1, 2);
    say(2, 3);
    expect(reader.problems.map(({ rule }) => rule)).toEqual(["LOOM-JSON", "LOOM-ORDER"]);
    expect(reader.runs).toHaveLength(1);
  });
});

function linesOfRun(word: string): readonly string[] {
  const chunks = [2, 3, 4].map((event_id) => ({
    event_id,
    ...{ type: "message_chunk", content: `${word}${event_id}`, id: "think" },
  }));
  const start = { event_id: 1, type: "run_start", message: word };
  return [start, ...chunks, { event_id: 5, reply: word }].map((message) => JSON.stringify(message));
}
