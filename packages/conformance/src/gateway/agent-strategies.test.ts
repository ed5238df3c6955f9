// Trees and graphs of thoughts as people watch them: the demo, in every dialect that has words for them.

import { builtInTools, clarifyTool, demoModel, demoTools, engine, spawnTool } from "@runwire/engine";
import { type Facts, is, loom, runtime, validatorOf } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import { allEvents, call, control, runPath } from "./calls.js";
import { openReading, readAll, streamPath } from "./readers.js";
import { ended, lastState, ofType, start, waitFor } from "./scripted.js";
import { underTest } from "./under-test.js";

const demo = demoModel({ wordMs: 0 });
const agent = engine({
  modelOf: () => demo,
  tools: [...demoTools({ searchMs: 0 }), ...builtInTools(), spawnTool, clarifyTool],
  planningGate: "preview",
});
const server = underTest((settings: object) => startGateway(settings, undefined, agent));
const prompt = "compare three charting libraries";

async function messages(run_id: string, dialect: string, detail: string): Promise<readonly Facts[]> {
  const { heard } = await readAll("ndjson", server.url, streamPath({ run_id, dialect, detail }));
  return heard.map(({ data }) => JSON.parse(data) as Facts);
}

const views = ["default", "full"] as const;

describe("a tree of thoughts", () => {
  it("is searched, goes back once where a way leads nowhere, and leads to the answer [RW-AGENT-2]", async () => {
    const events = await ended(server.url, await start(server.url, prompt, { agent: "tot" }));
    expect(lastState(events)).toMatchObject({ state: "done" });
    const [first, ...more] = ofType(events, "tot.expand");
    expect(first?.candidates).toHaveLength(3);
    expect([first, ...more].map((one) => one?.depth)).toEqual([1, 2, 2, 3]);
    expect(ofType(events, "tot.evaluate").map(({ chosen, scores }) => [chosen, scores])).toEqual([
      [0, [0.9, 0.7, 0.3]],
      [0, [0.4, 0.3, 0.2]],
      [0, [0.9, 0.6, 0.4]],
      [0, [0.9, 0.6, 0.5]],
    ]);
    const [, second] = (first as { readonly candidates: readonly string[] }).candidates;
    expect(ofType(events, "tot.backtrack")).toEqual([
      { reason: "the best of depth 2 scores 0.4, less than 0.5", to_depth: 1, to: 1, thought: second },
    ]);
    // Each level is a step, and each ask is counted.
    const levels = ofType(events, "step.boundary").filter(({ step_kind }) => step_kind === "text-only");
    expect(levels).toHaveLength(4);
    const asks = ofType(events, "model.completed").filter(({ purpose }) => purpose !== undefined);
    expect(asks.map(({ purpose }) => purpose)).toEqual(
      Array.from({ length: 4 }, () => ["tot.expand", "tot.evaluate"]).flat(),
    );
    expect(JSON.stringify(ofType(events, "message.settled").at(-1))).toContain("I would try uPlot first.");
    const sure = await ended(
      server.url,
      await start(server.url, "which of three databases is fast?", { agent: "tot" }),
    );
    expect(ofType(sure, "tot.backtrack")).toEqual([]);
    expect(ofType(sure, "tot.evaluate")).toHaveLength(3);
  });

  it.each(views)(
    "is said in Loom as it should be, each thought in its node: %s [RW-LOOM-7]",
    async (detail) => {
      const run_id = await start(server.url, prompt, { agent: "tot" });
      const said = await messages(run_id, "loom", detail);
      const validator = validatorOf(loom as never);
      expect([...said.flatMap((one) => validator.check(JSON.stringify(one))), ...validator.end()]).toEqual(
        [],
      );
      expect(said[0]).toMatchObject({ type: "run_start", agent: "tot", message: prompt });
      const open = new Map<unknown, unknown>();
      const inside: unknown[] = [];
      for (const { type, id, node_id } of said) {
        if (type === "node_enter") open.set(node_id, id);
        if (type === "node_exit") open.delete(node_id);
        if (String(type).startsWith("tot_")) inside.push([type, open.get(node_id)]);
        if (type === "thought_chunk") expect(open.get(node_id)).toBe(id);
      }
      const level = [
        ["tot_expand", "think_expand"],
        ["tot_evaluate", "think_evaluate"],
      ];
      const back = ["tot_backtrack", "think_evaluate"];
      expect(inside).toEqual([...level, ...level, back, ...level, ...level]);
      const thoughts = said.filter(({ id }) => id === "think_expand").map(({ content = "" }) => content);
      expect(thoughts.join("")).toContain("1. Find out what matters most");
      expect(said.at(-1)).toMatchObject({ reply: expect.stringContaining("I would try uPlot first.") });
    },
  );

  it("is for a plan that people approve, and its tools ask as ever [RW-AGENT-2]", async () => {
    const asked = { agent: "tot", planning_gate: "required", approvals: "destructive" };
    const run_id = await start(server.url, "compare two databases and save it", asked);
    await waitFor(server.url, run_id, "plan.proposal");
    const before = await allEvents(server.url, run_id);
    expect(ofType(before, "tot.expand")).toEqual([]);
    await control(server.url, run_id, "approve_plan");
    const [request] = await waitFor(server.url, run_id, "approval.requested");
    const path = runPath(run_id, `approvals/${request?.approval_id}`);
    expect((await call(server.url, "POST", path, { decision: "once" })).status).toBe(200);
    const events = await ended(server.url, run_id);
    expect(lastState(events)).toMatchObject({ state: "done" });
    expect(ofType(events, "tot.expand").length).toBeGreaterThan(2);
    expect(ofType(events, "tool.end").at(-1)).toMatchObject({ ok: true, output: { path: "report.md" } });
  });

  it("can be gone back to at the end of any level", async () => {
    const run_id = await start(server.url, prompt, { agent: "tot" });
    const events = await ended(server.url, run_id);
    const levels = events.filter((e) => is(e, "step.boundary") && e.payload.step_kind === "text-only");
    expect(levels).toHaveLength(4);
    const checkpoint_id = (levels[1]?.payload as Facts | undefined)?.checkpoint_id;
    const { status, body } = await control(server.url, run_id, "fork", { checkpoint_id });
    expect(status).toBe(201);
    const again = await ended(server.url, body.run_id as string);
    expect(lastState(again)).toMatchObject({ state: "done" });
    expect(ofType(again, "tot.expand")).toHaveLength(4);
  });
});

describe("a graph of thoughts", () => {
  it("runs its parts side by side as children, grows where it may, and is put together [RW-AGENT-3]", async () => {
    const run_id = await start(server.url, prompt, { agent: "got", got_adaptive: true });
    const events = await ended(server.url, run_id);
    expect(lastState(events)).toMatchObject({ state: "done" });
    const ids = ["uplot", "echarts", "observable-plot", "side-by-side"];
    expect(ofType(events, "got.plan")).toMatchObject([{ node_count: 4, edge_count: 3, node_ids: ids }]);
    expect(ofType(events, "got.expand")).toMatchObject([
      { node_id: "uplot", nodes_added: 1, edges_added: 1, nodes: [{ id: "drawbacks-of-uplot" }] },
    ]);
    const steps = events.filter(({ type }) => type === "got.node_start" || type === "got.node_complete");
    const marks = steps.map(({ type }) => (type === "got.node_start" ? "+" : "-")).join("");
    // Three at once, and then the two that need them.
    expect(marks).toMatch(/^\+\+\+-.*\+\+--$/);
    expect(ofType(events, "child.spawn")).toHaveLength(5);
    const children = (await call(server.url, "GET", runPath(run_id, "children"))).body.children as Facts[];
    expect(children.map(({ agent: of, state }) => [of, state])).toEqual(
      children.map(() => ["react", "done"]),
    );
    const last = ofType(events, "message.settled").at(-1)?.text;
    expect(last).toContain("- the drawbacks of uPlot: few chart types, little interaction.");
    const plain = await ended(server.url, await start(server.url, prompt, { agent: "got" }));
    expect(ofType(plain, "got.expand")).toEqual([]);
    expect(ofType(plain, "child.spawn")).toHaveLength(4);
  });

  it.each(views)(
    "is said in Loom and in the runtime stream as it should be: %s [RW-LOOM-7]",
    async (detail) => {
      const run_id = await start(server.url, prompt, { agent: "got", got_adaptive: true });
      const said = await messages(run_id, "loom", detail);
      for (const [dialect, name] of [
        [loom, "loom"],
        [runtime, "runtime"],
      ] as const) {
        const validator = validatorOf(dialect as never);
        const { heard } = await readAll("ndjson", server.url, streamPath({ run_id, dialect: name, detail }));
        const wrong = heard.flatMap(({ data }) => validator.check(data));
        expect([name, ...wrong, ...validator.end()]).toEqual([name]);
      }
      // A graph's own node stands where others have the one that speaks.
      const grown = said.find(({ type }) => type === "got_expand");
      expect(grown).toMatchObject({ node_id: "uplot", nodes_added: 1, edges_added: 1 });
      const names = new Map(
        said.filter(({ type }) => type === "node_enter").map((one) => [one.node_id, one.id]),
      );
      const nodesOf = (word: string) =>
        said.filter(({ type }) => type === word).map((one) => names.get(one.node_id));
      expect(new Set(nodesOf("got_plan"))).toEqual(new Set(["plan_graph"]));
      expect(new Set(nodesOf("got_node_start"))).toEqual(new Set(["execute_graph"]));
      expect(nodesOf("got_node_complete")).toEqual(Array.from({ length: 5 }, () => "execute_graph"));
      const runtimeTypes = (await messages(run_id, "runtime", detail)).map(({ type }) => type);
      for (const type of ["plan", "node_start", "node_complete", "expand"])
        expect(runtimeTypes).toContain(`x.runwire.got.${type}`);
      const exported = await messages(run_id, "loom-export", detail);
      expect(exported.some((one) => "GotExpand" in one)).toBe(true);
    },
  );

  it("is asked for on Loom's own WebSocket too, where an unknown agent is an error [RW-LOOM-5] [RW-AGENT-1]", async () => {
    const socket = await openReading("websocket", server.url, "/v1/loom");
    const said = (): readonly Facts[] => socket.events as unknown as readonly Facts[];
    socket.send({ type: "run", id: "a", message: prompt, agent: "got", got_adaptive: true });
    socket.send({ type: "run", id: "b", message: prompt, agent: "dup" });
    await socket.until(() => said().some(({ type, id }) => type === "run_end" && id === "a"));
    socket.stop();
    const types = said().map(({ event }) => (event as Facts | undefined)?.type);
    expect(types).toContain("got_expand");
    expect(said().filter(({ type }) => type === "error")).toMatchObject([
      { id: "b", code: "KAI-RUN-AGENT-0001", error: expect.stringContaining("react, tot, got") },
    ]);
  });
});

it("an unknown agent is refused for the agent's own runs, and any name is taken for others [RW-AGENT-1]", async () => {
  const { status, body } = await call(server.url, "POST", "/v1/agent/runs", { prompt, agent: "dup" });
  expect([status, JSON.stringify(body)]).toEqual([422, expect.stringContaining("react, tot, got")]);
  const outside = await call(server.url, "POST", "/v1/agent/runs", { agent: "dup", producer: "external" });
  expect(outside.status).toBe(201);
  const react = await ended(server.url, await start(server.url, prompt, { agent: "react" }));
  expect(ofType(react, "plan.proposal")).toHaveLength(1);
  expect(react.some(({ type }) => type.startsWith("tot.") || type.startsWith("got."))).toBe(false);
});
