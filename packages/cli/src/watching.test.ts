import { createServer, type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import type { Draft } from "@runwire/protocol";
import { describe, expect, it } from "vitest";
import { objectsOf, type Running, runwire, start, startOnTerminal } from "./testing/command.js";
import { type Loopback, loopback } from "./testing/loopback.js";
import { served, serveKeyed } from "./testing/served.js";

const question = "compare three charting libraries";
const server = served("watching");
const { folder } = server;
const asked: Draft = {
  type: "approval.requested",
  payload: { approval_id: "appr_1", tool: "shell", input: "ls" },
};
const ended = (state: "done" | "error"): Draft => ({
  type: "run.lifecycle",
  payload: { state, reason: null },
});

/** A run that the test itself writes. */
async function external(...drafts: readonly Draft[]): Promise<string> {
  const { run_id } = await server.api.createRun({ prompt: "x", producer: "external", lease_ms: 600_000 });
  if (drafts.length > 0) await server.api.append(run_id, drafts);
  return run_id;
}

const watching = (...args: readonly string[]): Running => start(args, server.env);
const command = (...args: readonly string[]): ReturnType<typeof runwire> => runwire(args, server.env);

/** On the way to the server, where something happens first whenever somebody posts. */
function between(posted: (req: IncomingMessage) => void | Promise<void>): Promise<Loopback> {
  const passing = createServer(async (req, res) => {
    const { method = "", url = "", headers } = req;
    if (method === "POST") await posted(req);
    if (req.socket.destroyed) return;
    const onward = request(`${server.url}${url}`, { method, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(res);
    });
    req.pipe(onward);
  });
  return loopback(passing);
}

/** What happened, whoever was faster: without times and ids, and thoughts that a crash may have begun anew. */
function storyOf(out: string): readonly string[] {
  return out
    .split("\n")
    .filter((line) => !line.includes("∴ thought"))
    .map((line) => line.replace(/run_\w+/g, "run").replace(/\d+\.\d s/g, "some time"))
    .filter((line) => !/^ {2}[\d,]+ tokens in/.test(line))
    .sort();
}

describe("runwire run", () => {
  it("shows a run from what was asked to what it cost, and ends as the run does", async () => {
    const { code, out, err } = await command("run", question);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const lines = out.split("\n");
    expect(lines[1]).toBe(`> ${question}`);
    for (const line of [
      "  ☐ Look into uPlot  demo.search",
      "  2 │ Looking up ECharts.",
      "I would try uPlot first.",
    ]) {
      expect(lines).toContain(line);
    }
    expect(out).toMatch(
      /✓ done in \d+\.\d s {2}Compare three charting libraries\n {2}\d+ tokens in, .* with 3 children\n$/,
    );
    expect(out).not.toContain("\u001b");
  });

  it("tells the same story where the server was killed in the middle and started again", async () => {
    const undisturbed = await command("run", question);
    const run = watching("run", question);
    await run.until(/· demo\.search/);
    await server.again();
    const { code, out, err } = await run.exited;
    expect(code).toBe(0);
    expect(err).toMatch(/^runwire: the connection to .* was lost; trying again\nrunwire: connected again\n$/);
    expect(storyOf(out)).toEqual(storyOf(undisturbed.out));
  });

  it("says what to do where no server answers", async () => {
    const { code, out, err } = await runwire(["run", "x", "--url", "http://127.0.0.1:9"]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toBe(
      "runwire: no server answers at http://127.0.0.1:9; start one with `runwire serve`, or name another with --url or RUNWIRE_URL\n",
    );
  });

  it("gives the id alone where it is detached, and the run goes on by itself", async () => {
    const { code, out, err } = await command("run", question, "--plan", "required", "--detach");
    expect({ code, out, err }).toEqual({ code: 0, out: expect.stringMatching(/^run_\w+\n$/), err: "" });
    const run_id = out.trim();
    expect((await command("approve", run_id)).out).toBe(`the plan is approved; ${run_id} is running\n`);
    expect(await command("tail", run_id)).toMatchObject({
      code: 0,
      out: expect.stringContaining("plan approved"),
    });
  });

  it("is left by Ctrl-C, which ends the watching and not the run", async () => {
    const run_id = await external();
    const tail = watching("tail", run_id, "--url", server.url);
    await tail.until(/● running/);
    const { code, err } = await tail.kill("SIGINT");
    expect(code).toBe(130);
    expect(err).toContain("the run goes on");
    expect(err).toContain(`runwire abort ${run_id} --url ${server.url}`);
    expect((await server.api.getRun(run_id)).state).toBe("running");
  });
});

describe("runwire tail", () => {
  it.each([
    ["done", 0],
    ["error", 1],
  ] as const)("of a run that ended as %s ends with code %i", async (state, code) => {
    expect(await command("tail", await external(ended(state)))).toMatchObject({ code, err: "" });
  });

  it("of a run that was aborted ends with code 2, and says why", async () => {
    const run_id = await external();
    const tail = watching("tail", run_id);
    await tail.until(/● running/);
    expect((await command("abort", run_id, "--reason", "found it")).out).toBe(`${run_id} is aborted\n`);
    expect(await tail.exited).toMatchObject({
      code: 2,
      out: expect.stringMatching(/■ aborted: found it in/),
    });
  });

  it.each(["koder", "runwire"])("prints the wire of %s, as the replay has it", async (dialect) => {
    const run_id = await external(
      { type: "text.delta", payload: { text: "Hi" } },
      { type: "usage", payload: { n: 1 } },
      ended("done"),
    );
    for (const detail of [[], ["--full"]]) {
      const { code, out } = await command("tail", run_id, "--json", "--dialect", dialect, ...detail);
      const query = `dialect=${dialect}${detail.length > 0 ? "&detail=full" : ""}`;
      const replay = await fetch(`${server.url}/v1/agent/runs/${run_id}/replay.jsonl?${query}`);
      expect({ code, out }).toEqual({ code: 0, out: await replay.text() });
    }
  });

  it.each([
    [["tail", "run_nobody"], "run not found"],
    [["tail", "run_nobody", "--dialect", "koder"], "--json"],
    [["tail", "x", "--url", "ftp://here"], "--url"],
    [["tail", "x", "--key", "a\nb"], "--key"],
    [["runs", "--limit", "0"], "--limit"],
    [["run", "x", "--adaptive"], "--agent got"],
    [["abort", ""], "name a run"],
    [["run", "x", "--budget", "0"], "--budget"],
    [["run", "x", "--budget", "1e999"], "--budget"],
    [["run", "x", "--budget", "2000000"], "must be at most 1000000"],
    [["approve", "x", "--input", "{"], "--input"],
    [["approve", "x", "--input", "1"], "--input"],
    [["pause", "run_nobody"], "runwire runs"],
  ])("and the others say in one line what is wrong with %j", async (args, named) => {
    const { code, out, err } = await command(...args);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err.trim().split("\n")).toHaveLength(1);
    expect(err).toContain(named);
  });
});

describe("from another terminal", () => {
  it("runs are listed, by state and session", async () => {
    const { run_id, session_id } = await server.api.createRun({
      prompt: "x",
      producer: "external",
      agent: "mine",
    });
    const { out } = await command("runs", "--session", session_id, "--state", "running");
    expect(out).toMatch(new RegExp(`^ID\tSTATE\tAGE\tTITLE\tAGENT\n${run_id}\trunning\t\\d+s\tx\tmine\n$`));
    const json = await command("runs", "--session", session_id, "--json");
    expect(JSON.parse(json.out)).toMatchObject({ run_id, state: "running" });
    expect(await command("runs", "--session", session_id, "--state", "done")).toMatchObject({
      code: 0,
      out: "",
    });
  });

  it("a run is paused, resumed, steered and redirected", async () => {
    const run_id = await external();
    expect((await command("pause", run_id)).out).toBe(`${run_id} is paused\n`);
    expect((await command("resume", run_id)).out).toBe(`${run_id} is running\n`);
    expect((await command("steer", run_id, "be brief")).out).toBe(`${run_id} is running\n`);
    expect((await command("redirect", run_id, "stop")).out).toBe(`${run_id} is redirecting\n`);
    const { events } = await server.api.events(run_id);
    expect(events.map(({ payload }) => payload)).toContainEqual(
      expect.objectContaining({ text: "be brief" }),
    );
    expect(events.map(({ payload }) => payload)).toContainEqual(
      expect.objectContaining({ instruction: "stop" }),
    );
  });

  it("a tool call is approved, of a child too, with other input or a reason", async () => {
    const run_id = await external(asked);
    const child = await server.api.spawnChild(run_id, { prompt: "help" });
    await server.api.append(child.run_id, [
      { ...asked, payload: { ...asked.payload, approval_id: "appr_2" } } as Draft,
    ]);
    const many = await command("approve", run_id);
    expect(many).toMatchObject({
      code: 1,
      err: expect.stringContaining("name one: appr_1 (shell ls), appr_2 (shell ls)"),
    });
    const first = await command("approve", run_id, "appr_2", "--decision", "once", "--input", '{"path":"/"}');
    expect(first.out).toBe("shell /: allowed (once)\n");
    const second = await command("approve", run_id, "--decision", "deny", "--reason", "no");
    expect(second.out).toBe("shell ls: denied\n");
    const { transcript } = await server.api.snapshot(run_id);
    expect(transcript.approvals.appr_1?.answer).toMatchObject({ decision: "deny", reason: "no" });
    const answer = transcript.children[child.run_id]?.transcript.approvals.appr_2?.answer;
    expect(answer).toMatchObject({ decision: "once", input: { path: "/" } });
    expect((await command("approve", run_id)).err).toContain("nothing waits for approval");
    expect((await command("approve", run_id, "appr_1")).err).toContain("KAI-RUN-REQUEST-0002");
  });

  it("a tool call is not approved for another run that asks under the same id", async () => {
    const children = [1, 2].map((n) => `run_same_${process.pid}_${n}`);
    const run_id = await external(
      ...children.flatMap((child_id): Draft[] => [
        { type: "child.spawn", payload: { child_id } },
        { ...asked, child_id },
      ]),
    );
    const both = await command("approve", run_id, "appr_1");
    expect(both).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringContaining(children.join(" (shell ls), ")),
    });
    expect((await command("approve", children[1] ?? "", "appr_1")).code).toBe(0);
    expect((await command("approve", run_id, "appr_1")).code).toBe(0);
  });

  it("a plan that is made again is waited for again", async () => {
    const to = (state: "planning" | "redirecting"): Draft =>
      ({ type: "run.lifecycle", payload: { state, reason: null } }) as Draft;
    const plan = {
      type: "plan.proposal",
      payload: { plan: { id: "p1", steps: [{ id: "s1", title: "Dig" }] } },
    };
    const gated = {
      prompt: "x",
      producer: "external",
      planning_gate: "required",
      lease_ms: 600_000,
    } as const;
    const { run_id } = await server.api.createRun(gated);
    await server.api.append(run_id, [plan as unknown as Draft]);
    expect((await command("approve", run_id)).code).toBe(0);
    await server.api.redirect(run_id, "elsewhere");
    await server.api.append(run_id, [to("planning")]);
    const approve = watching("approve", run_id);
    const readers = async (): Promise<string | undefined> =>
      /^runwire_readers\S* (\d+)/m.exec(await (await fetch(`${server.url}/metrics`)).text())?.[1];
    await expect.poll(readers).not.toBe("0");
    // Whoever takes the first plan for this one has answered by then.
    await command("runs");
    await server.api.append(run_id, [plan as unknown as Draft]);
    expect(await approve.exited).toMatchObject({
      code: 0,
      out: `the plan is approved; ${run_id} is running\n`,
    });
  });

  it("what waits for a person is listed, with the command that answers it", async () => {
    const run_id = await external(asked, {
      type: "clarify.requested",
      payload: { clarify_id: "clar_1", question: "Which one?" },
    });
    const { out } = await command("inbox");
    expect(out).toContain(`${run_id}\tapproval: shell ls\t`);
    expect(out).toContain(`\trunwire approve ${run_id} appr_1\n`);
    expect(out).toContain(`${run_id}\tanswer: Which one?\t`);
    expect(out).toContain(`\trunwire answer ${run_id} clar_1 TEXT\n`);
    const { out: lines } = await command("inbox", "--json");
    expect(objectsOf(lines)).toContainEqual(expect.objectContaining({ run_id, request_id: "appr_1" }));
    expect((await command("runs", "--state", "awaiting_approval")).err).toContain("runwire inbox");
  });

  it("a prompt that is blank starts nothing, and tools are named with commas between", async () => {
    expect(await command("run", " ")).toMatchObject({ code: 1, err: expect.stringContaining("not blank") });
    expect(await command("run", "x", "--tools", "file.*,nope")).toMatchObject({
      code: 1,
      err: expect.stringContaining('"nope"'),
    });
  });

  it("a fork says that its plan waits, or what the server says", async () => {
    const { run_id } = await server.api.createRun({
      prompt: "x",
      producer: "external",
      planning_gate: "required",
    });
    const { out } = await command("fork", run_id);
    expect(out).toMatch(/^(run_\w+) is planning .*; its plan waits for approval: runwire approve \1\n$/);
    expect(JSON.parse((await command("fork", run_id, "--json")).out)).toMatchObject({ state: "planning" });
  });

  it("what is approved for more than one call is listed, and taken back", async () => {
    expect((await command("approvals")).err).toContain("no tool is approved");
    const run_id = await external(asked);
    await command("approve", run_id, "--decision", "always");
    expect((await command("approvals")).out).toMatch(
      new RegExp(`^TOOL\\tFOR\\tSINCE\\tRUN\nshell\\tevery run\\t.+\\t${run_id}\n$`),
    );
    const listed = JSON.parse((await command("approvals", "--json")).out) as object;
    expect(listed).toMatchObject({ tool: "shell", decision: "always", approval_id: "appr_1", run_id });
    expect((await command("approvals", "--take-back", "shell")).out).toBe("shell is asked about again\n");
    expect(await command("approvals", "--take-back", "shell")).toMatchObject({
      code: 1,
      err: expect.stringContaining("KAI-RUN-APPROVAL-0001"),
    });
  });

  it("a question is answered", async () => {
    const run_id = await external({
      type: "clarify.requested",
      payload: { clarify_id: "clar_1", question: "Which?" },
    });
    expect((await command("answer", run_id, "clar_1", "both")).out).toBe("clar_1 is answered\n");
    expect((await server.api.snapshot(run_id)).transcript.clarifications.clar_1?.answer).toMatchObject({
      answer: "both",
    });
  });
});

describe("runwire evidence and review", () => {
  it("tell what a run did and what was decided, for people and for programs", async () => {
    const { out: created } = await command("run", question, "--plan", "required", "--detach");
    const run_id = created.trim();
    await expect.poll(async () => (await command("approve", run_id)).code, { timeout: 30_000 }).toBe(0);
    await command("tail", run_id);
    const { code, out } = await command("evidence", run_id);
    expect(code).toBe(0);
    for (const line of ["state\tdone", "attempts\t1", "cost\t$0", "signal review\texported"])
      expect(out.split("\n")).toContain(line);
    const pack = JSON.parse((await command("evidence", run_id, "--json")).out) as { log: { sha256: string } };
    expect(out).toContain(`sha256\t${pack.log.sha256}`);
    const review = await command("review", run_id);
    expect(review.out).toMatch(/\tperson\tplan\tapproved\t/);
    const edited = await external(asked);
    await command("approve", edited, "--input", '{"path":"/"}', "--reason", "only there");
    expect((await command("review", edited)).out).toMatch(/\tonce\tshell · edited · only there\n$/);
    const long = await external();
    await command("abort", long, "--reason", `x${"🐎".repeat(100)}`);
    expect((await command("review", long)).out).toContain(`\tabort\tx${"🐎".repeat(49)}…\n`);
    const parent = await external();
    const child = await server.api.spawnChild(parent, { prompt: "help" });
    await command("abort", child.run_id, "--reason", "enough");
    expect((await command("review", parent)).out).toContain(`\tabort\t${child.run_id} · enough\n`);
    expect((await command("review", child.run_id)).out).toContain("\tabort\tenough\n");
    const quiet = await command("review", await external(ended("done")));
    expect(quiet).toMatchObject({ code: 0, out: "", err: "nobody has decided anything about it\n" });
  });
});

describe("a wire that is not whole", () => {
  const told = (...kept: readonly number[]): string =>
    kept
      .map((pos) => {
        const payload = { state: pos === 3 ? "done" : "running", reason: null };
        const event = { id: `evt_${pos}`, ts: "2026-01-01T00:00:00.000Z", type: "run.lifecycle", payload };
        const data = JSON.stringify({ ...event, run_id: "run_1", child_id: null, seq: pos, pos });
        return `id: ${pos}\ndata: ${data}\n\n`;
      })
      .join("");

  it("says on stderr what is missing, and that a log begins anew", async () => {
    const streams = [told(1), `${told(1).replace("evt_1", "evt_9")}${told(3)}`];
    const forgetful = createServer((req, res) => {
      const isStream = req.url?.includes("/stream") === true;
      res.setHeader("content-type", isStream ? "text/event-stream" : "application/json");
      if (isStream) res.end(streams.shift());
      else res.end(JSON.stringify({ run_id: "run_1", state: "running", events: [], next: null }));
    });
    const { url, close } = await loopback(forgetful);
    const tail = await runwire(["tail", "run_1", "--json", "--url", url]);
    await close();
    expect(tail.err).toContain("runwire: the server has another log of this run now; from its start\n");
    expect(tail.err).toContain("runwire: events 2 to 2 are missing and could not be had\n");
    expect([tail.code, tail.out.trim().split("\n").length]).toEqual([0, 3]);
  });
});

describe("on a terminal", () => {
  it("requests are answered at the prompt, and what was typed for one is not taken for another", async () => {
    const run_id = await external();
    const tail = startOnTerminal(["tail", run_id], server.env);
    const choices = ["small", "any"];
    const which = (clarify_id: string): Draft => ({
      type: "clarify.requested",
      payload: { clarify_id, question: "Size?", choices },
    });
    await server.api.append(run_id, [which("clar_1")]);
    await tail.until(/1–2, or your own words ›/);
    tail.type("dd");
    await tail.until(/› \S*dd/);
    await server.api.answerClarification(run_id, "clar_1", "small");
    await tail.until(/✓ answered: small/);
    await server.api.append(run_id, [asked]);
    await tail.until(/\(o\)nce \(s\)ession \(a\)lways \(d\)eny/);
    tail.type("s");
    await tail.until(/✓ allowed for the session/);
    await server.api.append(run_id, [which("clar_2")]);
    await tail.until(/1–2, or your own words ›/);
    tail.type("12\u007f\u007f2\r");
    await tail.until(/✓ answered: any/);
    await server.api.append(run_id, [ended("done")]);
    const { code, out } = await tail.exited;
    expect(code).toBe(0);
    expect(out).toContain("\u001b[32m✓ done\u001b[0m");
    expect((await server.api.snapshot(run_id)).transcript).toMatchObject({
      approvals: { appr_1: { answer: { decision: "session" } } },
      clarifications: { clar_2: { answer: { answer: "any" } } },
    });
  });

  it("what was pasted into one request is not taken for the next", async () => {
    const run_id = await external(
      { type: "clarify.requested", payload: { clarify_id: "clar_1", question: "Why?" } },
      asked,
    );
    const tail = startOnTerminal(["tail", run_id], server.env);
    await tail.until(/your answer ›/);
    tail.type("because\ralways");
    await tail.until(/✓ answered: because/);
    await tail.until(/\(o\)nce \(s\)ession \(a\)lways \(d\)eny/);
    tail.type("d");
    await tail.until(/✗ denied/);
    await server.api.append(run_id, [ended("done")]);
    expect((await tail.exited).code).toBe(0);
  });

  it("what could not be answered is asked again, where another try may help", async () => {
    const run_id = await external(asked);
    let failing = 1;
    const { url, close } = await between(({ socket }) => {
      if (failing-- > 0) socket.destroy();
    });
    const tail = startOnTerminal(["tail", run_id, "--url", url]);
    await tail.until(/\(o\)nce \(s\)ession \(a\)lways \(d\)eny/);
    tail.type("o");
    await tail.until(/! not answered/);
    await tail.until(/\(o\)nce \(s\)ession \(a\)lways \(d\)eny/);
    tail.type("o");
    await tail.until(/✓ allowed/);
    await server.api.append(run_id, [ended("done")]);
    expect((await tail.exited).code).toBe(0);
    await close();
  });

  it("a key approves the plan that was shown, and no other that waits by then", async () => {
    const plan = (id: string): Draft =>
      ({ type: "plan.proposal", payload: { plan: { id, steps: [{ id: "s1", title: id }] } } }) as Draft;
    const { run_id } = await server.api.createRun({
      prompt: "x",
      producer: "external",
      planning_gate: "required",
    });
    await server.api.append(run_id, [plan("p1")]);
    const { url, close } = await between(async () => {
      await server.api.append(run_id, [
        { type: "run.lifecycle", payload: { state: "planning", reason: null } },
        plan("p2"),
      ]);
    });
    const tail = startOnTerminal(["tail", run_id, "--url", url]);
    await tail.until(/\(y\)es \(n\)o/);
    tail.type("y");
    await tail.until(/! not answered/);
    expect((await server.api.getRun(run_id)).state).toBe("awaiting_approval");
    await tail.kill("SIGKILL");
    await server.api.abort(run_id);
    await close();
  });

  it("a plan is approved with a key, and Ctrl-C leaves the run to itself", async () => {
    const run = startOnTerminal(["run", question, "--plan", "required"], server.env);
    const [, run_id = ""] = await run.until(/(run_\w{26})/);
    await run.until(/\(y\)es \(n\)o/);
    run.type("y");
    await run.until(/plan approved/);
    run.type("\u0003");
    const { code, out } = await run.exited;
    expect(code).toBe(130);
    expect(out).toContain(`runwire tail ${run_id}`);
    // The cursor is back.
    expect(out.lastIndexOf("\u001b[?25h")).toBeGreaterThan(out.lastIndexOf("\u001b[?25l"));
    expect((await command("tail", run_id)).code).toBe(0);
  });

  it("keys are taken after Ctrl-Z too, where there is no shell to go back to", async () => {
    const run_id = await external(asked);
    const tail = startOnTerminal(["tail", run_id], server.env);
    await tail.until(/\(o\)nce \(s\)ession \(a\)lways \(d\)eny/);
    tail.type("\u001a");
    await tail.until(/\(o\)nce \(s\)ession \(a\)lways \(d\)eny/);
    tail.type("o");
    await tail.until(/✓ allowed/);
    await server.api.append(run_id, [ended("done")]);
    expect((await tail.exited).code).toBe(0);
  });

  it("Ctrl-Z gives the cursor back, where nobody is asked", async () => {
    const run_id = await external({ type: "text.delta", payload: { text: "Hi" } });
    await server.api.append(run_id, [ended("done")]);
    const replay = startOnTerminal(["replay", run_id, "--speed", "0.00001x"], server.env);
    await replay.until(/\[\?25l/);
    replay.type("\u001a");
    await replay.until(/\[\?25h/);
    await replay.until(/\[\?25l/);
    replay.type("\u0003");
    expect((await replay.exited).code).toBe(130);
  });

  it.each([
    [{ NO_COLOR: "1" }, "\u001b[3"],
    [{ TERM: "dumb" }, "\u001b"],
  ])("%j is respected", async (env, unwanted) => {
    const run_id = await external(
      { type: "text.delta", payload: { text: "Hi \u001b[31mred" } },
      ended("done"),
    );
    const { code, out } = await startOnTerminal(["tail", run_id], { ...server.env, ...env }).exited;
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining("Hi red") });
    expect(out).not.toContain(unwanted);
  });
});

describe("with keys", () => {
  it("a command comes in with the one in RUNWIRE_TOKEN, and without is told how to get one", async () => {
    const keyed = await serveKeyed(join(folder, "keyed"), "read,write,control");
    const { url: at, keys } = keyed;
    const [RUNWIRE_TOKEN = ""] = keys;
    const run = await runwire(["run", question, "--url", at], { RUNWIRE_TOKEN });
    expect(run).toMatchObject({ code: 0, err: "" });
    const refused = await runwire(["runs", "--url", at]);
    expect(refused).toMatchObject({ code: 1, out: "", err: expect.stringContaining("set RUNWIRE_TOKEN") });
    const wrong = await runwire(["runs", "--url", at, "--key", `${RUNWIRE_TOKEN}x`]);
    expect(wrong.code).toBe(1);
    expect(wrong.err).not.toContain(RUNWIRE_TOKEN);
    await keyed.stop();
  });
});
