// What people's approvals stand for: one call, a tool in a session, or a tool from now on.

import { engine, spawnTool, type Tool } from "@runwire/engine";
import { type Facts, is } from "@runwire/protocol";
import { type Gateway, startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import { allEvents, call, codeOf, control, lifecycle, messageOf, runPath, say, tryAppend } from "./calls.js";
import { rawConnection, requestText } from "./raw-http.js";
import {
  calling,
  ended,
  lastState,
  ofType,
  script,
  scriptedModel,
  spawning,
  start,
  waitFor,
} from "./scripted.js";
import { forwardClock, underTest } from "./under-test.js";

/** What the dangerous tools have done. */
const done: unknown[] = [];
const dangerous = (name: string): Tool => ({
  name,
  description: "does something that cannot be taken back",
  effect: "destructive",
  input_schema: { type: "object" },
  async run(input) {
    done.push(input);
    return { text: "done" };
  },
});
const picky: Tool = {
  ...dangerous("picky"),
  check(input) {
    if (typeof (input as Facts).path !== "string")
      throw new Error("input must have required property 'path'");
  },
};

const clock = forwardClock();
const agent = engine({
  modelOf: () => scriptedModel,
  tools: [...["danger.one", "danger.two", "danger.three"].map(dangerous), picky, spawnTool],
  planningGate: "off",
});
let gateway: Gateway;
const server = underTest(
  async (settings: object) => {
    gateway = await startGateway(settings, clock, agent);
    return gateway;
  },
  {},
  clock,
);
const asking = { approvals: "destructive" };
const approvalsPath = "/v1/agent/approvals";

const answer = (run_id: unknown, approval_id: unknown, body: Facts) =>
  control(server.url, String(run_id), `approvals/${approval_id}`, body);

/** Starts a run that calls the tool, and answers what it asks. */
async function allowed(tool: string, body: Facts, asked: Facts = {}): Promise<string> {
  const run_id = await start(server.url, calling(tool), { ...asking, ...asked });
  const [request] = await waitFor(server.url, run_id, "approval.requested");
  expect((await answer(run_id, request?.approval_id, body)).status).toBe(200);
  return run_id;
}

const approvedIn = (events: Awaited<ReturnType<typeof ended>>): readonly unknown[] =>
  events.flatMap((e) => (is(e, "tool.start") && e.payload.tool !== "spawn" ? [e.payload.approved] : []));

describe("an approval", () => {
  it("for once is for one call: the next one is asked about again [RW-ALLOW-1]", async () => {
    const twice = script(
      { calls: [{ tool: "danger.one", input: {} }] },
      { calls: [{ tool: "danger.one", input: {} }] },
    );
    const run_id = await start(server.url, twice, asking);
    const [first] = await waitFor(server.url, run_id, "approval.requested");
    await answer(run_id, first?.approval_id, { decision: "once" });
    const [, second] = await waitFor(server.url, run_id, "approval.requested", 2);
    await answer(run_id, second?.approval_id, { decision: "once" });
    const events = await ended(server.url, run_id);
    expect(approvedIn(events)).toEqual(
      [first, second].map((asked) => ({ decision: "once", approval_id: asked?.approval_id, run_id })),
    );
    expect((await call(server.url, "GET", approvalsPath)).body).toEqual({ approvals: [] });
  });

  it("for the session is for the tool in all its turns and their children, and no further [RW-ALLOW-1]", async () => {
    const session_id = "sess_allowed";
    const run_id = await allowed("danger.one", { decision: "session" }, { session_id });
    const [request] = await waitFor(server.url, run_id, "approval.requested");
    await ended(server.url, run_id);
    await server.restart();
    const prompt = script(spawning(calling("danger.one")), { calls: [{ tool: "danger.one", input: {} }] });
    const later = await ended(server.url, await start(server.url, prompt, { ...asking, session_id }));
    expect(ofType(later, "approval.requested")).toEqual([]);
    const word = { decision: "session", approval_id: request?.approval_id, run_id };
    expect(approvedIn(later)).toEqual([word, word]);
    // Another tool, and another session, are asked about.
    for (const [tool, other] of [
      ["danger.two", { session_id }],
      ["danger.one", { session_id: "sess_other" }],
    ] as const) {
      const asked = await start(server.url, calling(tool), { ...asking, ...other });
      await waitFor(server.url, asked, "approval.requested");
      await control(server.url, asked, "abort");
    }
    const listed = await call(server.url, "GET", `${approvalsPath}?session_id=${session_id}`);
    expect(listed.body.approvals).toMatchObject([
      { tool: "danger.one", decision: "session", session_id, run_id },
    ]);
    expect((await call(server.url, "GET", approvalsPath)).body.approvals).toEqual([]);
    const back = () =>
      call(server.url, "DELETE", `${approvalsPath}?tool=danger.one&session_id=${session_id}`);
    expect((await back()).status).toBe(204);
    expect([(await back()).status, codeOf(await back())]).toEqual([404, "KAI-RUN-APPROVAL-0001"]);
  });

  it("for always is for the tool in every session, until it is taken back [RW-ALLOW-2]", async () => {
    const first = await allowed("danger.two", { decision: "always" });
    await ended(server.url, first);
    await server.restart();
    const later = await ended(server.url, await start(server.url, calling("danger.two"), asking));
    expect(ofType(later, "approval.requested")).toEqual([]);
    expect(approvedIn(later)).toMatchObject([{ decision: "always", run_id: first }]);
    // It outlives the run in which it was said.
    await call(server.url, "DELETE", `/v1/agent/runs/${first}`);
    const { body } = await call(server.url, "GET", approvalsPath);
    expect(body.approvals).toMatchObject([{ tool: "danger.two", decision: "always", session_id: null }]);
    expect((await call(server.url, "DELETE", `${approvalsPath}?tool=danger.two`)).status).toBe(204);
    const again = await start(server.url, calling("danger.two"), asking);
    await waitFor(server.url, again, "approval.requested");
    await control(server.url, again, "abort");
  });

  it("for more than once covers what already waits for the same tool, in the run and below it [RW-ALLOW-3]", async () => {
    const prompt = script({
      calls: [
        { tool: "danger.three", input: { n: 1 } },
        { tool: "danger.three", input: { n: 2 } },
        { tool: "danger.two", input: {} },
        { tool: "spawn", input: { prompt: calling("danger.three", { n: 3 }) } },
      ],
    });
    const run_id = await start(server.url, prompt, asking);
    const asked = await waitFor(server.url, run_id, "approval.requested", 4);
    const three = asked.filter(({ tool }) => tool === "danger.three");
    const [chosen, ...others] = three;
    expect((await answer(chosen?.by, chosen?.approval_id, { decision: "session" })).status).toBe(200);
    const resolved = await waitFor(server.url, run_id, "approval.resolved", 3);
    const covered = resolved.filter(({ outcome }) => outcome === "covered");
    expect(covered.map(({ approval_id }) => approval_id).toSorted()).toEqual(
      others.map(({ approval_id }) => approval_id).toSorted(),
    );
    expect(covered).toMatchObject(
      covered.map(() => ({ decision: "session", covered_by: chosen?.approval_id })),
    );
    const two = asked.find(({ tool }) => tool === "danger.two");
    expect((await answer(two?.by, two?.approval_id, { decision: "deny" })).status).toBe(200);
    expect(lastState(await ended(server.url, run_id))).toMatchObject({ state: "done" });
  });

  it("is nothing to another call once its session's turn that gave it is erased [RW-ALLOW-1]", async () => {
    const session_id = "sess_erased";
    const run_id = await allowed("danger.one", { decision: "session" }, { session_id });
    await ended(server.url, run_id);
    await call(server.url, "DELETE", `/v1/agent/runs/${run_id}`);
    const { body } = await call(server.url, "GET", `${approvalsPath}?session_id=${session_id}`);
    expect(body.approvals).toEqual([]);
  });

  it("is asked for by a child whose parent was told to ask, however it was spawned", async () => {
    const nested = script(spawning(script(spawning(calling("danger.one")))));
    const run_id = await start(server.url, nested, asking);
    const [request] = await waitFor(server.url, run_id, "approval.requested");
    expect(request?.by).not.toBe(run_id);
    await answer(request?.by, request?.approval_id, { decision: "deny" });
    await ended(server.url, run_id);
  });
});

describe("a run of the agent", () => {
  it("is written by the agent alone: nobody answers, moves or extends it by appending [RW-APPEND-7]", async () => {
    const run_id = await start(server.url, calling("danger.one"), asking);
    const [request] = await waitFor(server.url, run_id, "approval.requested");
    const approval_id = String(request?.approval_id);
    const before = await allEvents(server.url, run_id);
    const refused = [409, "KAI-RUN-AGENT-0002"];
    for (const draft of [
      say("approval.resolved", { approval_id, decision: "once", outcome: "answered", input: { n: "mine" } }),
      lifecycle("aborted"),
      lifecycle("paused"),
      say("steer.delivered", { steer_id: "steer_1", text: "do something else" }),
      say("child.spawn", { child_id: "run_unwritten", prompt: "x" }),
      say("text.delta", { text: "words in its mouth" }),
    ]) {
      const reply = await tryAppend(server.url, run_id, [draft]);
      expect([draft.type, reply.status, codeOf(reply)]).toEqual([draft.type, ...refused]);
      await expect(gateway.append(run_id, [draft])).rejects.toMatchObject({ code: refused[1] });
    }
    const session = await rawConnection(server.url);
    const chunked = ["Content-Type: application/x-ndjson", "Transfer-Encoding: chunked"];
    session.write(requestText(server.url, "POST", runPath(run_id, "events"), chunked));
    await session.until((answered) => answered.includes("KAI-RUN-AGENT-0002"));
    expect(session.text).toMatch(/^HTTP\/1\.1 409 /);
    session.socket.destroy();
    // It has no lease that somebody could keep.
    const beat = await control(server.url, run_id, "heartbeat");
    expect([beat.status, codeOf(beat)]).toEqual(refused);
    await expect(gateway.heartbeat(run_id)).rejects.toMatchObject({ code: refused[1] });
    expect(await allEvents(server.url, run_id)).toEqual(before);
    expect((await answer(run_id, approval_id, { decision: "deny" })).status).toBe(200);
    expect(ofType(await ended(server.url, run_id), "tool.start")).toEqual([]);
    const late = await tryAppend(server.url, run_id, [lifecycle("done")]);
    expect([late.status, codeOf(late)]).toEqual(refused);
  });
});

describe("edited arguments", () => {
  it("that the tool would not take are refused, and may be mended [RW-ALLOW-4]", async () => {
    const run_id = await start(server.url, calling("picky", { path: "a" }), asking);
    const [request] = await waitFor(server.url, run_id, "approval.requested");
    const id = request?.approval_id;
    const bad = await answer(run_id, id, { decision: "once", input: { file: "b" } });
    expect([bad.status, codeOf(bad), messageOf(bad)]).toEqual([
      422,
      "KAI-REQUEST-BODY-0002",
      expect.stringContaining("path"),
    ]);
    for (const input of ["b", 1, ["b"], true]) {
      const refused = await answer(run_id, id, { decision: "once", input });
      expect([input, refused.status]).toEqual([input, 422]);
    }
    expect((await answer(run_id, id, { decision: "once", input: { path: "c" } })).status).toBe(200);
    const events = await ended(server.url, run_id);
    expect(ofType(events, "tool.start")).toMatchObject([{ input: { path: "c" } }]);
    expect(done.at(-1)).toEqual({ path: "c" });
  });
});
