// Trees and graphs of thoughts through a server, with a model that answers anything: the search ends within its bounds,
// and an agent that is killed wherever it may be is succeeded by one that comes to the same.

import type { Event, Facts } from "@runwire/protocol";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { limits } from "../limits.js";
import { type Mortal, mortal } from "../testing/mortal.js";
import { endedRun, payloadsOf, post, readRun, type Served, served, startRun } from "../testing/served.js";
import { hashOf, type ThinkingModel, thinkingModel } from "../testing/thinking.js";

let server: Served;
let life: Mortal;
let model: ThinkingModel;
let onAppend: (run_id: string, types: readonly string[]) => Promise<void> = async () => {};

beforeAll(async () => {
  server = await served({
    model: () => model,
    around: (makeAgent) => {
      life = mortal(makeAgent);
      return life.make;
    },
    before: (run_id, drafts) =>
      onAppend(
        run_id,
        drafts.map(({ type }) => type),
      ),
  });
});
afterAll(() => server.close());

const whole = Number.POSITIVE_INFINITY;

/** A run to its end, with everything of its children. */
async function run(asked: Facts, writes: number = whole): Promise<readonly Event[]> {
  life.killAfter(writes);
  return readRun(server.url, await startRun(server.url, asked));
}

const own = (events: readonly Event[]) => events.filter(({ child_id }) => child_id === null);
const stateOf = (events: readonly Event[]) => (events.at(-1)?.payload as Facts | undefined)?.state;
const settled = (events: readonly Event[]) => payloadsOf(own(events), "message.settled").at(-1)?.text;

/** What a strategy has done, without what is made up anew each time. */
const told = (events: readonly Event[]): readonly unknown[] =>
  own(events)
    .filter(({ type }) => type.startsWith("tot.") || type.startsWith("got."))
    .map(({ type, payload: { call_id: _, ...facts } }) => ({ type, ...(facts as Facts) }));
const completed = (events: readonly Event[]): readonly unknown[] =>
  payloadsOf(own(events), "model.completed").flatMap(({ purpose, expands, unusable }) =>
    purpose === undefined ? [] : [{ purpose, expands, unusable }],
  );

/** Parts that run side by side end in any order. */
const inOrder = (list: readonly unknown[]): readonly string[] =>
  list.map((one) => JSON.stringify(one)).sort();

const forms: readonly ((items: readonly unknown[], name: string) => string)[] = [
  (items, name) => JSON.stringify({ [name]: items }),
  (items) => `Well.\n\`\`\`json\n${JSON.stringify(items)}\n\`\`\``,
  (items) => items.map((item, i) => `${i + 1}. ${typeof item === "object" ? "x" : item}`).join("\n"),
  () => "I cannot say.",
  () => "",
];

/** Answers of any kind, the same to the same wish. */
function wildModel(seed: number): ThinkingModel {
  return thinkingModel((wish, { purpose }) => {
    const luck = (what: string, below: number): number =>
      hashOf(`${seed} ${purpose} ${what} ${wish}`) % below;
    const form = forms[luck("form", forms.length + 3) % forms.length] as (typeof forms)[number];
    const count = luck("count", 7);
    const many = Array.from({ length: count }, (_, i) => i);
    switch (purpose) {
      case "tot.expand":
        return form(
          many.map((i) => `Thought ${luck(`thought ${i}`, 1000)}`),
          "candidates",
        );
      case "tot.evaluate":
        return form(
          many.map((i) => (luck(`score ${i}`, 130) - 15) / 100),
          "scores",
        );
      default:
        return form(
          many.map((i) => ({
            id: `p${luck(`id ${i}`, 9)}`,
            task: `${luck(`fails ${i}`, 4) === 0 ? "FAIL" : "Do"} part ${i}`,
            depends_on: Array.from(
              { length: luck(`deps ${i}`, 4) },
              (_, j) => `p${luck(`dep ${i} ${j}`, 9)}`,
            ),
          })),
          "nodes",
        );
    }
  });
}

const count = process.env.RUNWIRE_SOAK === undefined ? 15 : 300;
const seeds = fc.integer({ min: 0, max: 1_000_000 });

describe("whatever its model answers", () => {
  test("a tree is searched within its bounds, and what it came to guides the answer", async () => {
    await fc.assert(
      fc.asyncProperty(seeds, async (seed) => {
        model = wildModel(seed);
        const events = await run({ agent: "tot" });
        expect(stateOf(events)).toBe("done");
        expect(model.asked.length).toBeLessThanOrEqual(limits.searchAsksMax);
        expect(model.asked).toEqual(completed(events).map((one) => (one as Facts).purpose));
        let candidates: readonly string[] = [];
        let path: readonly string[] = [];
        /** The way to each thought, and itself. */
        const ways: (readonly string[])[] = [];
        for (const { type, payload } of own(events)) {
          const facts = payload as Facts;
          if (type === "tot.expand") {
            candidates = facts.candidates as readonly string[];
            expect(candidates.length).toBeGreaterThan(0);
            expect(candidates.length).toBeLessThanOrEqual(limits.thoughtsMax);
            expect(facts.depth).toBe(path.length + 1);
            ways.push(...candidates.map((text) => [...path, text]));
          } else if (type === "tot.evaluate") {
            const scores = facts.scores as readonly number[];
            const chosen = facts.chosen as number;
            if (scores.length > 0) expect(scores[chosen]).toBe(Math.max(...scores));
            path = [...path, candidates[chosen] as string];
          } else if (type === "tot.backtrack") {
            expect(facts.to_depth).toBeLessThan(path.length);
            expect(facts.reason).toMatch(/less than 0\.5/);
            path = ways[facts.to as number] as readonly string[];
            expect([path.length, path.at(-1)]).toEqual([facts.to_depth, facts.thought]);
          }
          expect(path.length).toBeLessThanOrEqual(limits.thoughtDepthMax);
        }
        expect(payloadsOf(events, "tot.backtrack").length).toBeLessThanOrEqual(limits.backtracksMax);
        // After a second unusable answer it goes on with what there is; otherwise the tree is as deep as it may be.
        const [last, before] = completed(events).toReversed() as readonly Facts[];
        const isGivenUp = last?.unusable === true && before?.unusable === true;
        if (!isGivenUp && model.asked.length <= limits.searchAsksMax - 4)
          expect(path).toHaveLength(limits.thoughtDepthMax);
        if (path.length > 0) expect(settled(events)).toContain(`- ${path.join("\n- ")}`);
      }),
      { numRuns: count },
    );
  });

  test("every part of a graph that begins ends, after what it needs, and the answer has what came of all", async () => {
    await fc.assert(
      fc.asyncProperty(seeds, fc.boolean(), async (seed, got_adaptive) => {
        model = wildModel(seed);
        const events = await run({ agent: "got", got_adaptive });
        expect(stateOf(events)).toBe("done");
        const needs = new Map<string, readonly string[]>();
        const begun = new Set<string>();
        const ended = new Set<string>();
        for (const { type, payload } of own(events)) {
          const { id, nodes, node_id, nodes_added, edges_added, node_count, edge_count } = payload as Facts;
          if (type === "got.plan" || type === "got.expand") {
            const more = nodes as readonly { id: string; deps: readonly string[] }[];
            for (const part of more) needs.set(part.id, part.deps);
            expect(more).toHaveLength((node_count ?? nodes_added) as number);
            expect(more.flatMap(({ deps }) => deps)).toHaveLength((edge_count ?? edges_added) as number);
            if (type === "got.expand") for (const part of more) expect(part.deps).toContain(node_id);
          } else if (type === "got.node_start") {
            expect(begun).not.toContain(id);
            for (const dep of needs.get(id as string) ?? ["unknown"]) expect(ended).toContain(dep);
            begun.add(id as string);
          } else if (type === "got.node_complete" || type === "got.node_failed") {
            expect(begun).toContain(id);
            expect(ended).not.toContain(id);
            ended.add(id as string);
          }
        }
        expect([...ended].sort()).toEqual([...needs.keys()].sort());
        expect(needs.size).toBeLessThanOrEqual(limits.graphNodesMax);
        expect(payloadsOf(own(events), "child.spawn")).toHaveLength(needs.size);
        const expansions = payloadsOf(events, "got.expand").length;
        expect(expansions).toBeLessThanOrEqual(got_adaptive ? limits.expansionsMax : 0);
        for (const id of needs.keys()) expect(settled(events)).toContain(`## ${id}: `);
      }),
      { numRuns: count },
    );
  });
});

/** Scores by what was asked: the first level is promising, what follows from its best is not. */
const treeModel = () =>
  thinkingModel((wish, { purpose }) => {
    const sofar = /so far:\n((?:.+\n?)+)/.exec(wish)?.[1]?.trim().split("\n") ?? [];
    if (purpose === "tot.expand")
      return wish.includes("could not be read") || sofar.length !== 1
        ? JSON.stringify({ candidates: ["a", "b", "c"].map((one) => `${one}${sofar.length}`) })
        : "Hm.";
    return sofar.length === 1 && sofar[0] === "1. a0" ? "[0.2, 0.1, 0]" : "[0.9, 0.7, 0.1]";
  });

const graphModel = () =>
  thinkingModel((wish, { purpose }) => {
    if (purpose === "got.plan")
      return JSON.stringify({
        nodes: [
          { id: "a", task: "Do a" },
          { id: "b", task: "FAIL at b" },
          { id: "c", task: "Do c", depends_on: ["a", "b"] },
        ],
      });
    return wish.includes("Part a is done") ? '[{"id": "more", "task": "Do more"}]' : '{"nodes": []}';
  });

describe("killed after any of its writes, a run comes to the same", () => {
  test.each([
    ["tot", treeModel],
    ["got", graphModel],
  ] as const)("%s", { timeout: 120_000 }, async (agent, makeModel) => {
    model = makeModel();
    const asked = { agent, got_adaptive: true };
    const events = await run(asked);
    expect(stateOf(events)).toBe("done");
    const total = life.writes;
    const asks = model.asked.length;
    expect(total).toBeGreaterThan(20);
    for (let writes = 1; writes < total; writes++) {
      model = makeModel();
      const again = await run(asked, writes);
      const at = `killed after ${writes} of ${total} writes`;
      expect(stateOf(again), at).toBe("done");
      expect(settled(again), at).toBe(settled(events));
      expect(inOrder(told(again)), at).toEqual(inOrder(told(events)));
      // What is in the log is not asked for again: only the one that was under way may be.
      expect(completed(again), at).toEqual(completed(events));
      expect(model.asked.length, at).toBeLessThanOrEqual(asks + 1);
      expect(payloadsOf(again, "child.spawn"), at).toHaveLength(payloadsOf(events, "child.spawn").length);
      const steps = payloadsOf(own(again), "step.boundary");
      expect(
        steps.map(({ step_index }) => step_index),
        at,
      ).toEqual(steps.map((_, i) => i));
    }
  });
});

describe("people are heard in the middle of it", () => {
  /** The run, once something of this type is about to be stored. */
  async function at(
    type: string,
    asked: Facts,
    act: (run_id: string) => Promise<unknown>,
  ): Promise<readonly Event[]> {
    life.killAfter(whole);
    let isDone = false;
    onAppend = async (id, types) => {
      if (isDone || !types.includes(type)) return;
      isDone = true;
      isDone = (await act(id)) !== "again";
    };
    const run_id = await startRun(server.url, asked);
    return readRun(server.url, run_id);
  }
  const control = (run_id: string, action: string, body: Facts = {}) =>
    post(server.url, `/v1/agent/runs/${run_id}/${action}`, body);

  test.each([
    ["tot", treeModel, "tot.evaluate"],
    ["got", graphModel, "got.node_start"],
  ] as const)("a pause holds the search, and it goes on where it was: %s", async (agent, makeModel, type) => {
    model = makeModel();
    const events = await run({ agent });
    const again = await at(type, { agent }, async (run_id) => {
      await control(run_id, "pause");
      // What was under way is still written; whoever resumes comes after it.
      void readRun(server.url, run_id, (e) => e.type === type).then(() => control(run_id, "resume"));
    });
    const states = again.map((e) =>
      e.type === "run.lifecycle" && e.child_id === null ? stateOf([e]) : null,
    );
    const paused = states.indexOf("paused");
    const meanwhile = again.slice(paused, states.indexOf("running", paused)).map((e) => e.type);
    expect(meanwhile).toContain(type);
    expect(meanwhile).not.toContain("model.requested");
    expect(inOrder(told(again))).toEqual(inOrder(told(events)));
    expect(settled(again)).toBe(settled(events));
  });

  test("what is said to steer it in the end is in the answer", async () => {
    model = treeModel();
    let level = 0;
    const events = await at("tot.evaluate", { agent: "tot" }, (run_id) => {
      level += 1;
      return level < 4 ? Promise.resolve("again") : control(run_id, "steer", { text: "Be brief" });
    });
    expect(level).toBe(4);
    expect(settled(events)).toMatch(/^Done: Be brief/);
    expect(payloadsOf(events, "steer.leftover")).toEqual([]);
  });

  test("what is said to steer it is in the next thoughts", async () => {
    const wishes: string[] = [];
    model = thinkingModel((_, request) => {
      wishes.push(request.messages.map((message) => ("content" in message ? message.content : "")).join("|"));
      return request.purpose === "tot.expand" ? '["x", "y"]' : "[1, 0]";
    });
    const events = await at("tot.evaluate", { agent: "tot" }, (run_id) =>
      control(run_id, "steer", { text: "think of the cost" }),
    );
    expect(stateOf(events)).toBe("done");
    expect(payloadsOf(events, "steer.delivered")).toHaveLength(1);
    expect(wishes.slice(0, 2).join()).not.toContain("think of the cost");
    for (const wish of wishes.slice(2)) expect(wish).toContain("think of the cost");
  });

  test.each([
    ["tot", "tot.evaluate"],
    ["got", "got.node_start"],
  ])("a redirection drops the search of %s, and ends what it began", async (agent, type) => {
    model = agent === "tot" ? treeModel() : graphModel();
    const events = await at(type, { agent }, (run_id) =>
      control(run_id, "redirect", { instruction: "Stop that" }),
    );
    expect(stateOf(events)).toBe("done");
    expect(settled(events)).toMatch(/^Done: Stop that/);
    expect(settled(events)).not.toMatch(/line of thought|parts/);
    const ends = [...payloadsOf(events, "got.node_complete"), ...payloadsOf(events, "got.node_failed")];
    expect(ends.map(({ id }) => id).sort()).toEqual(
      payloadsOf(events, "got.node_start")
        .map(({ id }) => id)
        .sort(),
    );
    const redirected = events.findIndex(({ payload }) => {
      const { state, reason } = payload as Facts;
      return state === "running" && reason === "redirected";
    });
    expect(redirected).toBeGreaterThan(0);
    expect(told(events.slice(redirected))).toEqual([]);
    // No child outlives what it was for.
    const states = new Map(
      events.filter((e) => e.type === "run.lifecycle").map((e) => [e.child_id, (e.payload as Facts).state]),
    );
    for (const state of states.values()) expect(["done", "aborted", "error"]).toContain(state);
  });

  test("an abort ends it, and every part of it", async () => {
    model = graphModel();
    const events = await at("got.node_start", { agent: "got" }, (run_id) => control(run_id, "abort"));
    expect(stateOf(events)).toBe("aborted");
  });
});

test("a child of a run that thinks first is a plain one, whatever its parent is", async () => {
  onAppend = async () => {};
  life.killAfter(whole);
  model = graphModel();
  const run_id = await startRun(server.url, { agent: "got" });
  const events = await readRun(server.url, run_id);
  const children = events.filter(({ child_id }) => child_id !== null);
  expect(payloadsOf(children, "turn.submitted").map(({ agent }) => agent)).toEqual([
    "react",
    "react",
    "react",
  ]);
  expect(told(children.map((e) => ({ ...e, child_id: null })))).toEqual([]);
  await expect(
    post(server.url, `/v1/agent/runs/${run_id}/children`, { prompt: "x", agent: "got" }),
  ).rejects.toThrow(/agent/);
});

test("an unknown agent is refused when the run is created, and told what there is", async () => {
  await expect(startRun(server.url, { agent: "dup" })).rejects.toThrow(
    /422.*KAI-RUN-AGENT-0001.*react, tot, got/,
  );
  const { run_id } = await post(server.url, "/v1/agent/runs", { agent: "dup", producer: "external" });
  expect(run_id).toMatch(/^run_/);
  onAppend = async () => {};
  life.killAfter(whole);
  model = treeModel();
  const plain = await endedRun(server.url, await startRun(server.url, { agent: "react" }));
  expect(told(plain)).toEqual([]);
});
