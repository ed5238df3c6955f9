// What a run can be shown to have done, and what people decided about it; for runs of the agent, of others, and live ones.

import { createHash } from "node:crypto";
import { demoModel, demoTools, engine, spawnTool } from "@runwire/engine";
import {
  type Dialect,
  type Event,
  type Facts,
  runtimeStrict,
  type Signal,
  validatorOf,
} from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import { append, call, control, createRun, lifecycle, runPath, say } from "./calls.js";
import { readAll, streamPath } from "./readers.js";
import { ended, start } from "./scripted.js";
import { freshChildId } from "./story.js";
import { underTest } from "./under-test.js";

const agent = engine({
  modelOf: () => demoModel({ wordMs: 0 }),
  tools: [...demoTools({ searchMs: 0 }), spawnTool],
  planningGate: "off",
});
const server = underTest((settings) => startGateway(settings, undefined, agent), {});

const get = async (path: string): Promise<Facts> => (await call(server.url, "GET", path)).body;
const signalsOf = (pack: Facts) => pack.signals as { readonly [signal: string]: Signal };

async function digestOf(pack: Facts): Promise<object> {
  const { replay_ref } = pack.refs as { readonly replay_ref: string };
  const replay = Buffer.from(await (await fetch(server.url + replay_ref)).arrayBuffer());
  const sha256 = createHash("sha256").update(replay).digest("hex");
  return { view: "full", events: replay.toString().split("\n").length - 1, bytes: replay.length, sha256 };
}

/** What a strict reader has against the run's stream. */
async function violationsOf(run_id: string): Promise<readonly unknown[]> {
  const validator = validatorOf(runtimeStrict as Dialect);
  const { heard } = await readAll("ndjson", server.url, streamPath({ run_id, dialect: "runtime-strict" }));
  expect(heard.length).toBeGreaterThan(50);
  return [...heard.flatMap(({ data }) => validator.check(data)), ...validator.end()];
}

describe("a run's evidence", () => {
  it("is named before the end of a run of the agent, and each ref can be fetched [RW-COURSE-4] [RW-RUNTIME-15]", async () => {
    const run_id = await start(server.url, "compare two databases");
    const events = await ended(server.url, run_id);
    const own = events.filter(({ child_id }) => child_id === null);
    expect(own.at(-2)).toMatchObject({ type: "evidence.changed" });
    const { scope, payload } = own.at(-2) as Event;
    const pack = await get(String(payload.pack_ref));
    expect(pack.refs).toEqual({ ...scope, ...payload });
    for (const ref of Object.values(payload)) expect((await fetch(server.url + ref)).status).toBe(200);
    expect(pack).toMatchObject({ run_id, state: "done", cost: { usd: 0, known: true } });
    expect(pack.log).toEqual(await digestOf(pack));
    expect(await violationsOf(run_id)).toEqual([]);
    const tasks = pack.tasks as readonly Facts[];
    expect(tasks.map(({ status }) => status)).toEqual(tasks.map(() => "completed"));
    expect(tasks.filter((task) => task.run_id === run_id)).toMatchObject([
      { attempts: [{ attempt_id: run_id, status: "completed" }] },
    ]);
    expect(signalsOf(pack)).toMatchObject({
      trace: "exported",
      replay: "exported",
      attempts: "exported",
      review: "not_applicable",
      sandbox_violations: "not_applicable",
      cost: "exported",
    });
  });

  it("has what went wrong in a run that others write, and says what cannot be joined [RW-COURSE-4]", async () => {
    const run_id = await createRun(server.url);
    const child = freshChildId();
    await append(
      server.url,
      run_id,
      say("model.requested", { model: "m" }),
      say("usage", { model: "m", provider: "p", input_tokens: 5, unpriced_requests: 1 }),
      say("child.spawn", { child_id: child }),
      say("tool.start", { call_id: "c1", tool: "shell", input: { command: "a secret" } }, child),
      say("tool.end", { call_id: "c1", ok: false, error: { code: "KAI-TOOL-RUN-0001" } }, child),
      { type: "sandbox.violation", payload: { call_id: "c1", what: "network" } } as never,
      { type: "hook.failed", payload: { why: "it broke" } } as never,
      { type: "artifact.changed", payload: { read_ref: "r" }, scope: { artifact_id: "a1" } } as never,
    );
    const live = await get(runPath(run_id, "evidence"));
    expect(live).toMatchObject({ state: "running", cost: { usd: null, known: false } });
    expect(live.log).toEqual(await digestOf(live));
    await append(server.url, run_id, lifecycle("done", child), lifecycle("error"));
    const pack = await get(runPath(run_id, "evidence"));
    expect(pack).toMatchObject({
      state: "error",
      totals: { failures: 2, sandbox_violations: 1, hook_failures: 1, artifacts: 1 },
      artifacts: [{ artifact_id: "a1", read_ref: "r" }],
      failures: [{ type: "tool.end", run_id: child, call_id: "c1" }, { type: "run.lifecycle" }],
      usage: { "p/m": { input_tokens: 5, unpriced_requests: 1 } },
    });
    expect(signalsOf(pack)).toMatchObject({
      artifacts: "exported",
      sandbox_violations: "exported",
      hook_failures: "missing_correlation",
      cost: "unsupported",
      attempts: "unsupported",
    });
    expect(JSON.stringify(pack)).not.toContain("a secret");
  });

  it("has files without what is in them, and those that were only counted belong to their call [RW-COURSE-4]", async () => {
    const run_id = await createRun(server.url);
    const changed = (payload: Facts, scope: Facts) => ({ type: "artifact.changed", payload, scope }) as never;
    await append(
      server.url,
      run_id,
      changed({ path: "a.md", preview: "a secret" }, { tool_call_id: "c1", artifact_id: "a1" }),
      changed({ change: "more", more: 11 }, { tool_call_id: "c1" }),
    );
    const pack = await get(runPath(run_id, "evidence"));
    expect(pack.artifacts).toMatchObject([{ path: "a.md" }, { more: 11, tool_call_id: "c1" }]);
    expect(signalsOf(pack).artifacts).toBe("exported");
    expect(JSON.stringify(pack)).not.toContain("a secret");
    await append(server.url, run_id, changed({ path: "b.md" }, { tool_call_id: "c1" }));
    const unnamed = await get(runPath(run_id, "evidence"));
    expect(signalsOf(unnamed).artifacts).toBe("missing_correlation");
  });
});

describe("a run's review", () => {
  it("has each decision with who, when and what, and what still waits [RW-COURSE-4] [RW-COURSE-5]", async () => {
    const run_id = await createRun(server.url, { planning_gate: "required" });
    await append(server.url, run_id, say("plan.proposal", { plan: { id: "plan_1", steps: [] } }));
    const first = await get(runPath(run_id, "review"));
    expect(first.waiting).toMatchObject([{ kind: "plan", id: "plan_1", run_id }]);
    await control(server.url, run_id, "approve_plan", { reason: "fine" });
    await append(
      server.url,
      run_id,
      say("approval.requested", { approval_id: "appr_1", call_id: "c1", tool: "shell" }),
      say("clarify.requested", { clarify_id: "clar_1", question: "Which?" }),
    );
    await control(server.url, run_id, "approvals/appr_1", { decision: "deny", reason: "too risky" });
    await control(server.url, run_id, "steer", { text: "hurry" });
    await control(server.url, run_id, "pause", {});
    const { decisions, waiting } = await get(runPath(run_id, "review"));
    expect(decisions).toMatchObject([
      { kind: "plan", who: "person", decision: "approved", id: "plan_1", reason: "fine" },
      { kind: "approval", who: "person", decision: "deny", id: "appr_1", tool: "shell", reason: "too risky" },
      { kind: "steer", who: "person", text: "hurry" },
      { kind: "control", who: "person", decision: "pause" },
    ]);
    expect(waiting).toMatchObject([{ kind: "clarification", id: "clar_1", question: "Which?" }]);
    await control(server.url, run_id, "abort", { reason: "enough" });
    const after = await get(runPath(run_id, "review"));
    expect(after).toMatchObject({ waiting: [], decisions_total: 6 });
    expect((after.decisions as readonly Facts[]).slice(4)).toMatchObject([
      { kind: "control", decision: "abort", reason: "enough" },
      { kind: "clarification", who: "run", decision: "unanswered" },
    ]);
    // The pack has the same, without what was said.
    const pack = await get(runPath(run_id, "evidence"));
    const silent = (after.decisions as readonly Facts[]).map(
      ({ text: _, question: __, reason: ___, ...rest }) => rest,
    );
    expect(pack.human_decisions).toEqual(silent);
    expect(JSON.stringify(pack)).not.toMatch(/fine|too risky|enough/);
  });
});
