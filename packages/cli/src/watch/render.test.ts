import { fileURLToPath } from "node:url";
import type { Followed } from "@runwire/client";
import type { Draft, Event } from "@runwire/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Look, layOut } from "./line.js";
import { liveLines } from "./live.js";
import { render } from "./render.js";
import { type Ask, askKey, firstTimeline, type Manner } from "./timeline.js";

const run_id = "run_01HZ7K3M000000000000000000";
const child_id = "run_01HZ7K3M000000000000000001";
const beganMs = Date.parse("2026-01-01T00:00:00.000Z");

const pipe: Manner = { columns: null, live: false, prompts: false, full: false, children: "show" };
const terminal: Manner = { columns: 80, live: true, prompts: true, full: false, children: "show" };

/** Events of a log, 250 ms apart. */
function logOf(drafts: readonly Draft[]): readonly Event[] {
  return drafts.map((draft, i) => ({
    ...draft,
    id: `evt_${i}`,
    run_id,
    child_id: draft.child_id ?? null,
    ts: new Date(beganMs + 250 * i).toISOString(),
    pos: i + 1,
    seq: i + 1,
  }));
}

function rowsOf(items: readonly Followed[], manner: Manner, look: Look): readonly string[] {
  let timeline = firstTimeline(run_id);
  return items.flatMap((item) => {
    const rendered = render(timeline, item, manner);
    timeline = rendered.timeline;
    return rendered.lines.flatMap((line) => layOut(line, look));
  });
}

const shown = (drafts: readonly Draft[], manner: Manner, look: Look): readonly string[] =>
  rowsOf(
    logOf(drafts).map((event) => ({ kind: "event", event })),
    manner,
    look,
  );
const plainly = (...drafts: readonly Draft[]): readonly string[] =>
  shown(drafts, pipe, { columns: null, colour: false });

const text = (words: string, of: string | null = null): Draft => ({
  type: "text.delta",
  payload: { text: words },
  child_id: of,
});
const thought = (words: string): Draft => ({ type: "reasoning.delta", payload: { text: words } });
const state = (to: string, reason: string | null = null, of: string | null = null): Draft =>
  ({ type: "run.lifecycle", payload: { state: to, reason }, child_id: of }) as Draft;

/** A run in which everything happens that has a line. */
const story: readonly Draft[] = [
  state("planning"),
  {
    type: "turn.submitted",
    payload: { messages: [{ role: "user", content: "compare charts\nfor a dashboard" }] },
  },
  thought("I should first look at what there is, and "),
  thought("then say which one fits. That takes a plan of two steps or so."),
  {
    type: "plan.proposal",
    payload: {
      plan: {
        id: "plan_1",
        est_total_cost_usd: 0.04,
        steps: [
          { id: "s1", title: "Look into uPlot", est_tools: ["search"], est_cost_usd: 0.01 },
          {
            id: "s2",
            title: "Say which of them fits a dashboard with live updates, and why the others do not",
          },
        ],
      },
    },
  },
  state("awaiting_approval", "plan proposed"),
  { type: "step.boundary", payload: { step_index: 0, step_kind: "plan" } },
  state("running", "plan approved"),
  text("I'll look into uPlot, "),
  text("and ask a helper to look into the others while I am at it.\n\n- first 図表 and 📈\n- then the re"),
  text("st"),
  { type: "tool.call", payload: { call_id: "c1", tool: "search", input: { query: "uPlot", pages: 2 } } },
  {
    type: "approval.requested",
    payload: {
      approval_id: "appr_1",
      call_id: "c1",
      tool: "search",
      input: { query: "uPlot" },
      effect: "read-only",
    },
  },
  { type: "approval.resolved", payload: { approval_id: "appr_1", decision: "session", reason: null } },
  { type: "tool.start", payload: { call_id: "c1", tool: "search", input: { query: "uPlot", pages: 2 } } },
  { type: "tool.output", payload: { call_id: "c1", text: "page 1\npage 2\n" } },
  {
    type: "tool.end",
    payload: { call_id: "c1", ok: true, output: { text: "small\nand fast" }, duration_ms: 1234 },
  },
  { type: "tool.start", payload: { call_id: "c2", tool: "shell", input: "rm -rf build" } },
  {
    type: "tool.end",
    payload: { call_id: "c2", ok: false, error: { code: "E1", message: "not allowed here" } },
  },
  { type: "child.spawn", payload: { child_id, prompt: "Find out about ECharts" } },
  state("running", null, child_id),
  text("Looking up ECharts, which has many more chart types than the other and is larger.", child_id),
  {
    type: "clarify.requested",
    payload: { clarify_id: "clar_1", question: "How large?", choices: ["small", "any"] },
    child_id,
  },
  {
    type: "clarify.resolved",
    payload: { clarify_id: "clar_1", answer: "any", outcome: "answered" },
    child_id,
  },
  state("error", "no network", child_id),
  { type: "steer.accepted", payload: { text: "only free ones" } },
  { type: "steer.delivered", payload: { text: "only free ones" } },
  state("paused", "paused"),
  state("running", "resumed"),
  { type: "control.requested", payload: { action: "redirect", instruction: "be brief" } },
  state("redirecting", "redirected"),
  { type: "usage", payload: { input_tokens: 12_345, output_tokens: 67, requests: 2, cost_usd: 0.0421 } },
  text("Take uPlot."),
  { type: "step.boundary", payload: { step_index: 1, step_kind: "done" } },
  { type: "message.settled", payload: { text: "Take uPlot." } },
  { type: "title", payload: { title: "Charts \u001b]0;pwned\u0007compared" } },
  { type: "suggestions", payload: { suggestions: ["And for maps?"] } },
  state("done"),
];

/** A run that thinks first, in a tree and then, by another producer, in a graph. */
const thoughts: readonly Draft[] = [
  state("running"),
  thought("\nThoughts at depth 1:\n1. Ask first"),
  { type: "tot.expand", payload: { candidates: ["Ask first \u001b[2J", "Look into all of them"], depth: 1 } },
  { type: "tot.evaluate", payload: { chosen: 0, scores: [0.9, 0.7] } },
  { type: "tot.expand", payload: { candidates: ["Guess what matters most to whoever asked"], depth: 2 } },
  { type: "tot.evaluate", payload: { chosen: 0, scores: [0.2] } },
  {
    type: "tot.backtrack",
    payload: { reason: "the best scores 0.2", to_depth: 1, to: 1, thought: "Look into all of them" },
  },
  { type: "tot.expand", payload: { candidates: ["a", "b"] } },
  { type: "tot.evaluate", payload: { chosen: 1, scores: [] } },
  {
    type: "got.plan",
    payload: {
      node_count: 2,
      edge_count: 1,
      node_ids: ["uplot", "compare"],
      nodes: [
        { id: "uplot", task: "Find out about uPlot", deps: [] },
        { id: "compare", task: "Put it side by side", deps: ["uplot"] },
      ],
    },
  },
  { type: "got.node_start", payload: { id: "uplot", call_id: "c1" } },
  {
    type: "child.spawn",
    payload: { child_id, prompt: "Find out about uPlot\n\nIt is a part.", call_id: "c1" },
  },
  state("running", null, child_id),
  text("Small and fast.", child_id),
  state("done", null, child_id),
  { type: "got.node_complete", payload: { id: "uplot", result_summary: "Small and fast." } },
  {
    type: "got.expand",
    payload: {
      node_id: "uplot",
      nodes_added: 1,
      edges_added: 1,
      nodes: [{ id: "n3", task: "Find out about its drawbacks", deps: ["uplot"] }],
    },
  },
  { type: "got.node_start", payload: { id: "n3" } },
  { type: "got.node_failed", payload: { id: "n3", error: "no network" } },
  { type: "got.plan", payload: { node_count: 1, edge_count: 0, node_ids: ["alone"] } },
  state("done"),
];

const golden = (name: string): string => fileURLToPath(new URL(`../../fixtures/${name}`, import.meta.url));

describe("a run on paper", () => {
  it("reads as in the golden file, in a pipe", async () => {
    const rows = shown(story, pipe, { columns: null, colour: false });
    await expect(`${rows.join("\n")}\n`).toMatchFileSnapshot(golden("timeline.plain.txt"));
  });

  it("reads as in the golden file, in full", async () => {
    const rows = shown(story, { ...pipe, full: true }, { columns: null, colour: false });
    await expect(`${rows.join("\n")}\n`).toMatchFileSnapshot(golden("timeline.full.txt"));
  });

  it("reads as in the golden file, on a terminal of 80 columns with colours", async () => {
    const rows = shown(story, terminal, { columns: 80, colour: true });
    await expect(`${rows.join("\n")}\n`).toMatchFileSnapshot(golden("timeline.80.ansi.txt"));
  });

  it("reads as in the golden file, on one of 30 columns", async () => {
    const rows = shown(story, { ...terminal, columns: 30 }, { columns: 30, colour: false });
    await expect(`${rows.join("\n")}\n`).toMatchFileSnapshot(golden("timeline.30.txt"));
  });

  it.each([
    ["thoughts.plain.txt", pipe, null],
    ["thoughts.30.txt", { ...terminal, columns: 30 }, 30],
  ])(
    "reads as in the golden file, where it thinks in trees and graphs: %s",
    async (name, manner, columns) => {
      const rows = shown(thoughts, manner, { columns, colour: false });
      await expect(`${rows.join("\n")}\n`).toMatchFileSnapshot(golden(name));
    },
  );

  it("shows the beginning of a long prompt, and how much more there is", () => {
    const asked = (content: string): Draft => ({
      type: "turn.submitted",
      payload: { messages: [{ role: "user", content }] },
    });
    expect(plainly(asked("x".repeat(5000)))).toEqual([`> ${"x".repeat(2000)}… (3,000 more)`]);
    expect(plainly(asked("x".repeat(2000)))).toEqual([`> ${"x".repeat(2000)}`]);
    const whole = shown([asked("x".repeat(5000))], { ...pipe, full: true }, { columns: null, colour: false });
    expect(whole).toEqual([`> ${"x".repeat(5000)}`]);
  });

  it("says of a model that failed when it is asked again", () => {
    const failed = (payload: object): Draft => ({ type: "model.failed", payload }) as Draft;
    expect(plainly(failed({ message: "busy", wait_ms: 2500 }), failed({ message: "no" }))).toEqual([
      "! the model failed (again in 2.5 s): busy",
      "! the model failed: no",
    ]);
  });

  it("says that another model goes on, and that the budget runs low", () => {
    const told = [
      { type: "routing.fallback.applied", payload: { to: { model: "llama" }, reason: "busy" } },
      { type: "quota.low", payload: { spent_usd: 0.09, budget_usd: 0.1 } },
    ] as readonly Draft[];
    expect(plainly(...told)).toEqual([
      "! llama goes on instead",
      "! the budget runs low: $0.09 of $0.1 spent",
    ]);
  });

  it("shows of hidden children only that they were spawned and what they ask", () => {
    const rows = shown(story, { ...pipe, children: "hide" }, { columns: null, colour: false });
    expect(rows.filter((row) => row.startsWith("  1 │"))).toEqual([
      "  1 │ ? How large?",
      "  1 │   1. small",
      "  1 │   2. any",
      `  1 │   answer with: runwire answer ${child_id} clar_1 TEXT`,
      "  1 │ ✓ answered: any",
    ]);
    expect(rows).toContain(`▸ 1 Find out about ECharts  ${child_id}`);
  });

  it("goes on with the line it was in after a crash, and thinks anew", () => {
    const asked: Draft = { type: "model.requested", payload: {} };
    expect(plainly(text("Hel"), asked, text("lo."), state("done"))[0]).toBe("Hello.");
    expect(plainly(thought("Hm"), asked, thought("Hm, yes"), text("x"), state("done")).slice(0, 2)).toEqual([
      "∴ thought for 0.3 s  Hm",
      "∴ thought for 0.3 s  Hm, yes",
    ]);
  });

  it("has the message of a producer that streams none, and does not repeat that of one that does", () => {
    const settled: Draft = { type: "message.settled", payload: { text: "Hello." } };
    expect(plainly(settled)).toEqual(["Hello."]);
    expect(plainly(text("Hello."), settled)).toEqual(["Hello."]);
    expect(plainly(text("Hello."), settled, settled)).toEqual(["Hello.", "Hello."]);
  });

  it("begins again where the log was reset, and says where events are missing", () => {
    const [event] = logOf([text("a\n")]) as readonly [Event];
    const items: readonly Followed[] = [
      { kind: "event", event },
      { kind: "gap", run_id, from: 2, to: 4 },
      { kind: "reset", run_id },
      { kind: "event", event },
      { kind: "unknown", run_id, at: 2, type: "x" },
    ];
    expect(rowsOf(items, pipe, { columns: null, colour: false })).toEqual([
      "a",
      "! 3 events are missing here and could not be had",
      "── the server has another log of this run now; from its start ──",
      "a",
    ]);
  });

  it("has empty lines between two paragraphs, and none below the last", () => {
    const tool: Draft = { type: "tool.start", payload: { call_id: "c", tool: "look", input: {} } };
    const said = plainly(text("One.\n\n"), text("Two.\n"), text("\n"), tool, text("\nThree."), state("done"));
    expect(said.slice(0, -1)).toEqual(["One.", "", "Two.", expect.stringContaining("look"), "", "Three."]);
  });

  it("has the same lines however its text was cut into pieces", () => {
    const pieces = fc.array(
      fc.string({ unit: fc.constantFrom("a", " ", "- ", "b", "\n", "図", "👩‍💻", "\u001b[1m") }),
    );
    fc.assert(
      fc.property(pieces, fc.constantFrom(pipe, { ...terminal, columns: 12 }), (parts, manner) => {
        const look = { columns: manner.columns, colour: false };
        const end = state("done");
        const rows = shown([...parts.map((part) => text(part)), end], manner, look);
        expect(rows.slice(0, -1)).toEqual(shown([text(parts.join("")), end], manner, look).slice(0, -1));
      }),
    );
  });

  it("never lets through what a terminal would obey, nor a row that is too long", () => {
    const nasty = fc.string({
      unit: fc.oneof(
        fc.constantFrom("\u001b[2J", "\u009b1m", "\r", "\u202e", "語", "🏳️‍🌈", "\u0007"),
        fc.string({ unit: "binary", maxLength: 1 }),
      ),
    });
    const drafts = fc.tuple(nasty, nasty, nasty).map(([a, b, c]): readonly Draft[] => [
      { type: "turn.submitted", payload: { messages: [{ role: "user", content: a }] } },
      thought(b),
      text(c, child_id),
      text(a),
      { type: "tool.start", payload: { call_id: "c", tool: b, input: { [c]: a } } },
      { type: "tool.output", payload: { call_id: "c", text: b } },
      { type: "tool.end", payload: { call_id: "c", ok: false, error: { code: a, message: c } } },
      {
        type: "plan.proposal",
        payload: { plan: { id: "p", steps: [{ id: "s", title: a, est_tools: [b] }] } },
      },
      { type: "clarify.requested", payload: { clarify_id: "q", question: a, choices: [b] } },
      { type: "approval.requested", payload: { approval_id: b, tool: c, input: a } },
      { type: "steer.accepted", payload: { text: b } },
      { type: "title", payload: { title: c } },
      { type: "tot.expand", payload: { candidates: [a, b], depth: 1 } },
      { type: "tot.evaluate", payload: { chosen: 1, scores: [0.5, c, { toString: 1 }] } },
      { type: "tot.backtrack", payload: { reason: a, to_depth: b, thought: c } },
      { type: "got.plan", payload: { node_ids: [a], nodes: [{ id: b, task: c, deps: [a, null] }, null] } },
      { type: "got.node_failed", payload: { id: a, error: b } },
      { type: "got.node_complete", payload: { id: a, result_summary: { toString: 1 } } },
      { type: "got.expand", payload: { node_id: c, nodes: [{ id: a }] } },
      state("error", a),
    ]);
    fc.assert(
      fc.property(drafts, fc.integer({ min: 8, max: 100 }), fc.boolean(), (given, columns, full) => {
        const rows = shown(given, { ...terminal, columns, full, prompts: false }, { columns, colour: false });
        for (const row of rows) {
          expect(row).not.toMatch(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/u);
          expect(columnsOf(row)).toBeLessThan(columns);
        }
      }),
    );
  });
});

it("what lies beside the log is shown by how it begins, before anybody allows it", () => {
  const preview = '{"command":"rm -rf / # yyy';
  const spilled = { input: { blob_ref: "blob_1", bytes: 70_000, media_type: "application/json", preview } };
  const call = { call_id: "c", tool: "shell", input: {}, spilled };
  const rows = plainly(
    { type: "tool.call", payload: call },
    { type: "approval.requested", payload: { approval_id: "appr_1", ...call } },
    { type: "tool.start", payload: call },
    {
      type: "tool.end",
      payload: { call_id: "c", ok: true, spilled: { output: { ...spilled.input, preview: "yes" } } },
    },
  );
  expect(rows.at(-1)).toContain("→ yes… (70,000 bytes in all)");
  const told = `shell ${preview}… (70,000 bytes in all)`;
  expect(rows).toEqual(expect.arrayContaining([`? may it run ${told}`, `· ${told}`]));
});

it.each([
  ["once", "✓ allowed this once"],
  ["approve", "✓ allowed"],
  ["deny", "✗ denied"],
  ["denied", "· answered denied"],
  ["constructor", "· answered constructor"],
])("an approval that is answered %j says %j, and nothing else is a yes", (decision, verdict) => {
  const rows = plainly(
    { type: "approval.requested", payload: { approval_id: "appr_1", tool: "shell", input: {} } },
    { type: "approval.resolved", payload: { approval_id: "appr_1", decision } },
  );
  expect(rows.at(-1)).toMatch(new RegExp(`^${verdict}  shell`));
});

/** Counted by another rule than the code's: no character is narrower than this says. Vowels that join a syllable take no room. */
function columnsOf(row: string): number {
  const wide = row.match(/[語図]|\p{Emoji_Presentation}(?!\p{Emoji_Modifier})/gu)?.length ?? 0;
  return (
    [...new Intl.Segmenter().segment(row)].filter(({ segment }) =>
      /[^\p{M}\p{Cf}\u1160-\u11ff]/u.test(segment),
    ).length + wide
  );
}

describe("what goes on", () => {
  const look: Look = { columns: 60, colour: false };
  const after = (...drafts: readonly Draft[]): readonly string[] => {
    let timeline = firstTimeline(run_id);
    for (const event of logOf(drafts))
      timeline = render(timeline, { kind: "event", event }, terminal).timeline;
    return liveLines(timeline, beganMs + 2000, terminal).flatMap((line) => layOut(line, look));
  };

  it("is the thought's end, the row in the making, and each tool that runs", () => {
    expect(after(thought("a ".repeat(40)), thought("the end"))).toEqual([
      expect.stringMatching(/^∴ thinking {2}….* the end$/),
    ]);
    expect(after(text("Hel"), text("lo"))).toEqual(["Hello"]);
    const start: Draft = {
      type: "tool.start",
      payload: { call_id: "c", tool: "search", input: { query: "x" } },
    };
    const output: Draft = { type: "tool.output", payload: { call_id: "c", text: "1\n2 of 3\n" } };
    expect(after(start, output)).toEqual(["⠋ search 2.0 s  x  2 of 3"]);
  });

  it("is the state where nothing else is, and nothing after the end", () => {
    expect(after(state("running"))).toEqual(["⠋ running"]);
    expect(after(state("running"), state("paused"))).toEqual([`⏸ paused; runwire resume ${run_id}`]);
    expect(after(state("running"), state("done"))).toEqual([]);
  });
});

describe("what waits for a person", () => {
  const after = (...drafts: readonly Draft[]): readonly Ask[] => {
    let timeline = firstTimeline(run_id);
    for (const event of logOf(drafts))
      timeline = render(timeline, { kind: "event", event }, terminal).timeline;
    return timeline.asks;
  };
  const spawn = (of: string): Draft => ({ type: "child.spawn", payload: { child_id: of } });
  const approval = (of: string): Draft => ({
    type: "approval.requested",
    payload: { approval_id: "a1", tool: of },
    child_id: of,
  });

  it("is what each run asks, under the same id too, until that run is answered", () => {
    const other = "run_01HZ7K3M000000000000000002";
    const asked = [spawn(child_id), spawn(other), approval(child_id), approval(other)];
    expect(new Set(after(...asked).map(askKey)).size).toBe(2);
    const answered: Draft = {
      type: "approval.resolved",
      payload: { approval_id: "a1", decision: "once" },
      child_id: other,
    };
    expect(after(...asked, answered)).toMatchObject([{ run_id: child_id, id: "a1" }]);
  });

  it("is each plan of a run by itself", () => {
    const plans = [state("planning"), state("awaiting_approval")];
    const again = [...plans, state("running"), state("redirecting"), ...plans];
    const [first, second] = [after(...plans), after(...again)];
    expect([first.length, second.length]).toEqual([1, 1]);
    expect(first.map(askKey)).not.toEqual(second.map(askKey));
  });

  it("is about the plan that was shown", () => {
    const plan = (id: string): Draft => ({ type: "plan.proposal", payload: { plan: { id, steps: [] } } });
    const first = [state("planning"), plan("p1"), state("awaiting_approval")];
    expect(after(...first)).toMatchObject([{ kind: "plan", plan_id: "p1" }]);
    const second = [state("planning"), plan("p2"), state("awaiting_approval")];
    expect(after(...first, ...second)).toMatchObject([{ kind: "plan", plan_id: "p2" }]);
    const replaced = after(...first, plan("p2"));
    expect(replaced).toMatchObject([{ kind: "plan", plan_id: "p2" }]);
    expect(replaced.map(askKey)).not.toEqual(after(...first).map(askKey));
  });
});

describe("what governed a call", () => {
  const fact = (type: string, payload: Draft["payload"]): Draft => ({ type, payload }) as Draft;

  it("is a line where somebody said no, something was out of bounds, or files have changed", () => {
    expect(
      plainly(
        fact("permission.evaluated", { toolName: "shell", policy: "allowed" }),
        fact("hook.started", { name: "check", toolName: "shell" }),
        fact("hook.completed", { name: "check", toolName: "shell", outcome: "passed" }),
        fact("hook.completed", {
          name: "check",
          toolName: "shell",
          outcome: "refused",
          reason: "not\ntoday",
        }),
        fact("hook.completed", { name: "input-check", toolName: "shell", outcome: "refused", reason: "x" }),
        fact("hook.failed", { name: "check", toolName: "shell", reason: "timeout", message: "too slow" }),
        fact("sandbox.violation", { toolName: "file.read", violation: "outside-workspace" }),
        fact("artifact.changed", { path: "a\u001b[2J.md", change: "created", bytes: 1200 }),
        fact("artifact.changed", { path: "b.md", change: "deleted" }),
        fact("artifact.changed", { change: "more", more: 3 }),
      ),
    ).toEqual([
      "⊘ the hook check refused shell: not today",
      "! the hook check failed at shell: too slow",
      "⊘ file.read was kept in its sandbox: outside-workspace",
      "+ a.md (1,200 bytes)",
      "- b.md",
      "± and 3 more files have changed",
    ]);
  });
});
