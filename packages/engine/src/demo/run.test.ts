// The demo through a server: what comes of a run is what its plan says, or what people made of it.

import { type Event, type Facts, is } from "@runwire/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clarifyTool } from "../clarify.js";
import { spawnTool } from "../spawn.js";
import {
  endedRun,
  joined,
  payloadsOf,
  post,
  readRun,
  type Served,
  served,
  startRun,
} from "../testing/served.js";
import { fileWriteTool } from "../tools/file-write.js";
import { demoTools } from "./tools.js";

let server: Served;
let onAppend: (run_id: string, types: readonly string[]) => Promise<void>;
beforeAll(async () => {
  server = await served({
    tools: [...demoTools({ searchMs: 0 }), spawnTool, clarifyTool, fileWriteTool],
    before: (run_id, drafts) =>
      onAppend(
        run_id,
        drafts.map(({ type }) => type),
      ),
  });
});
afterAll(() => server.close());

interface Story {
  readonly events: readonly Event[];
  readonly steps: readonly Facts[];
  readonly said: string;
}

async function run(asked: Facts, before: typeof onAppend = async () => {}): Promise<Story> {
  onAppend = before;
  const run_id = await startRun(server.url, { model: "demo", planning_gate: "preview", ...asked });
  const events = await endedRun(server.url, run_id);
  expect(events.at(-1)?.payload).toMatchObject({ state: "done" });
  const [proposal] = payloadsOf(events, "plan.proposal");
  const { steps = [] } = (proposal?.plan ?? {}) as { readonly steps?: readonly Facts[] };
  return { events, steps, said: String(payloadsOf(events, "message.settled").at(-1)?.text) };
}

const ticked = (events: readonly Event[]) =>
  events.flatMap((e) => (is(e, "step.boundary") ? (e.payload.plan_steps ?? []) : []));

describe("an undisturbed run of the demo", () => {
  test.each([
    [{ prompt: "compare three charting libraries" }, 4],
    [{ prompt: "help me choose a database and save it" }, 6],
    [{ prompt: "compare two databases", tools: ["demo.search", "file.*"] }, 3],
    [{ prompt: "compare two databases", tools: ["spawn"] }, 3],
    [{ prompt: "compare two databases", tools: [] }, 1],
  ])("does each step of its plan, once: %j", async (asked, count) => {
    const { events, steps } = await run(asked, async (run_id, types) => {
      if (types.includes("clarify.requested")) void answerTo(run_id, "speed");
    });
    expect(steps).toHaveLength(count);
    expect(ticked(events)).toEqual(steps.map(({ id }) => id));
    const { tools } = asked as { readonly tools?: readonly string[] };
    const needed = steps.flatMap(({ est_tools }) => est_tools as readonly string[]);
    if (tools !== undefined) expect(needed.filter((tool) => !tools.includes(tool))).toEqual([]);
  });
});

async function answerTo(run_id: string, answer: string): Promise<void> {
  const events = await readRun(server.url, run_id, ({ type }) => type === "clarify.requested");
  const [asked] = payloadsOf(events, "clarify.requested");
  await post(server.url, `/v1/agent/runs/${run_id}/clarifications/${asked?.clarify_id}`, { answer });
}

test("a run that is redirected to another task does that, and is named by it", async () => {
  let isRedirected = false;
  const { events, said } = await run(
    { prompt: "compare three charting libraries" },
    async (run_id, types) => {
      if (isRedirected || !types.includes("tool.start")) return;
      isRedirected = true;
      await post(server.url, `/v1/agent/runs/${run_id}/redirect`, {
        instruction: "compare two databases, in depth",
      });
    },
  );
  expect(said).toContain("- SQLite: one file");
  expect(said).toContain("- PostgreSQL: many writers");
  expect(said).not.toContain("redirected");
  expect(payloadsOf(events, "title")).toEqual([{ title: "Compare two databases, in depth" }]);
  // What has become of the old plan nobody knows.
  expect(ticked(events)).toEqual([]);
});

test("an edited plan is what is done", async () => {
  onAppend = async () => {};
  const prompt = "compare three charting libraries";
  const run_id = await startRun(server.url, { model: "demo", prompt, planning_gate: "required" });
  await readRun(server.url, run_id, (e) => is(e, "run.lifecycle") && e.payload.state === "awaiting_approval");
  const steps = [{ title: "Only look into uPlot" }];
  await post(server.url, `/v1/agent/runs/${run_id}/approve_plan`, { steps });
  const events = await endedRun(server.url, run_id);
  expect(payloadsOf(events, "child.spawn")).toMatchObject([{ prompt: "Find out about uPlot" }]);
  expect(ticked(events)).toEqual(["s1"]);
});

test("what is said before and after a tool are two paragraphs, and where it was saved is said", async () => {
  const { events, said } = await run({ prompt: "compare two databases and save it" });
  expect(
    joined(
      events.filter((e) => (e.payload as Facts).call_id === undefined),
      "text.delta",
    ),
  ).toMatch(/looked into at the same time\.\n\nI'll save the comparison to report\.md\.\n\nHere is what/);
  expect(said).toMatch(/I would try SQLite first\.\n\nSaved to report\.md\.$/);
});
