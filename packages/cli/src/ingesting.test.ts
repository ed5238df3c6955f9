import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Draft, dialects, type Event, type Facts, runwire as log, loom } from "@runwire/protocol";
import { beforeAll, describe, expect, it } from "vitest";
import { objectsOf, pipe, type Running, runwire, start } from "./testing/command.js";
import { sampleLines, sampleRun } from "./testing/sample.js";
import { served, serveKeyed } from "./testing/served.js";

const server = served("ingest");
const { folder } = server;
const spoken = [...dialects.values()];

const command = (...args: readonly string[]): ReturnType<typeof runwire> => runwire(args, server.env);
const text = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join("");
const chunk = (content: string): string =>
  `${JSON.stringify({ type: "message_chunk", content, id: "think" })}\n`;
const ask = (call_id: string): string =>
  `${JSON.stringify({ type: "tool_approval", call_id, name: "shell", arguments: { line: "ls" } })}\n`;

const asking = (id: string): Draft => ({
  type: "approval.requested",
  payload: { approval_id: id, call_id: id, tool: "shell" },
});

function ingest(...args: readonly string[]): Running {
  return start(["ingest", "--dialect", "loom", ...args], server.env);
}

/** A run that is being written: its id once it is there. */
async function ingesting(
  ...lines: readonly string[]
): Promise<{ readonly run: Running; readonly run_id: string }> {
  const run = ingest("--json");
  run.type(lines.join(""));
  const [, run_id = ""] = await run.until(/"run_id":"(run_\w+)"/);
  return { run, run_id };
}

/** The run's events once one of them is what is waited for. */
async function seen(run_id: string, is: (e: Event) => boolean): Promise<readonly Event[]> {
  const tail = start(["tail", run_id, "--json", "--full"], server.env);
  try {
    for (;;) {
      await tail.until(/\n/);
      const events = objectsOf<Event>(tail.out);
      if (events.some(is)) return events;
    }
  } finally {
    await tail.kill("SIGINT");
  }
}

const saying =
  (words: string) =>
  ({ type, payload }: Event): boolean =>
    type === "text.delta" && (payload as { text: string }).text === words;

describe("runwire ingest", () => {
  it.each(spoken)("stores a run of $name, which is then read as any other", async (dialect) => {
    const args = ["ingest", "--dialect", dialect.name, "--json", "--session", "sess_1"];
    const { code, out, err } = await pipe(text(sampleLines(dialect)), args, server.env);
    const { run_id } = JSON.parse(out) as { run_id: string };
    expect({ code, err }).toEqual({
      code: 0,
      err: `${run_id} is running; watch it: runwire tail ${run_id}\n${run_id} is done\n`,
    });
    expect(await server.api.getRun(run_id)).toMatchObject({ state: "done", session_id: "sess_1" });
    const { transcript } = await server.api.snapshot(run_id);
    expect(transcript.tools.call_1).toMatchObject({ tool: "shell", status: "ok" });
  });

  it("creates it with what Loom says it was asked, by whom and where", async () => {
    const begun = `${JSON.stringify({ session_id: "sess-7", event_id: 1, type: "run_start", message: "Tidy up", agent: "react" })}\n`;
    const { run, run_id } = await ingesting(begun);
    expect(await server.api.getRun(run_id)).toMatchObject({
      agent: "react",
      session_id: "sess-7",
      state: "running",
    });
    const { events } = await server.api.events(run_id);
    expect(events[1]).toMatchObject({
      type: "turn.submitted",
      payload: { messages: [{ content: "Tidy up" }] },
    });
    run.type('{"reply":"done"}\n');
    run.close();
    expect((await run.exited).code).toBe(0);
  });

  const tidyUp = { messages: [{ role: "user", content: "Tidy up" }] };
  it.each([
    ["a prompt", { prompt: "Tidy up" }, tidyUp],
    ["a message", { message: "Tidy up" }, tidyUp],
    ["a message after an empty prompt", { prompt: "", message: "Tidy up" }, tidyUp],
    ["a prompt after no messages", { messages: [], prompt: "Tidy up" }, tidyUp],
    ["words of its own after no messages", { messages: [], input: { goal: 1 } }, { input: { goal: 1 } }],
    ["nothing", { prompt: " \n" }, { prompt: " \n" }],
    ["words of its own", { input: { goal: "Tidy up" } }, { input: { goal: "Tidy up" } }],
  ])("keeps what a runtime was asked, where it says it as %s", async (_, payload, kept) => {
    const lines = [
      { type: "run.status", sessionId: "sess-8", payload: { status: "running" } },
      { type: "turn.submitted", payload },
      { type: "run.status", payload: { status: "completed" } },
    ];
    const args = ["ingest", "--dialect", "runtime", "--json"];
    const { out } = await pipe(text(lines.map((line) => JSON.stringify(line))), args, server.env);
    const { run_id } = JSON.parse(out) as { run_id: string };
    const { events } = await server.api.events(run_id, { dialect: "runwire" });
    const asked = events.filter(({ type }) => type === "turn.submitted").at(-1);
    expect(asked?.payload).toMatchObject(kept);
    expect(await server.api.getRun(run_id)).toMatchObject({ session_id: "sess-8", state: "done" });
  });

  it("sends lines as they come, tells of bad ones by number, and ends as an error where the input is cut", async () => {
    const deep = `{"type":"values","state":${"[".repeat(64)}${"]".repeat(64)}}\n`;
    const { run, run_id } = await ingesting(chunk("first"), "{\n", '{"type":"tool_start"}\n', deep);
    await seen(run_id, saying("first"));
    run.type(chunk("second"));
    await seen(run_id, saying("second"));
    run.close();
    const { code, err } = await run.exited;
    expect(code).toBe(1);
    expect(err).toContain("stdin:2: KAI-STREAM-PROTO-0001: malformed event: not JSON\n");
    expect(err).toContain(
      "stdin:3: KAI-STREAM-PROTO-0001: malformed event: tool_start: `name` must be a string\n",
    );
    expect(err).toContain(
      "stdin:4: KAI-STREAM-PROTO-0001: malformed event: event: `payload` is nested deeper than 64\n",
    );
    expect(err).toContain("stdin: 5 lines, 3 bad\n");
    expect(await server.api.getRun(run_id)).toMatchObject({
      state: "error",
      reason: "the input ended before the run did",
    });
  });

  it.each([
    ["completed", {}, "done", null],
    ["failed", { reason: "no model" }, "error", "no model"],
    ["failed", { status: "cancelled" }, "aborted", "its turn failed"],
  ])(
    "ends as its turn, %s %j, where the wire tells of no other end",
    async (name, payload, state, reason) => {
      const lines = [
        { type: "turn.submitted", payload: { prompt: "Go" } },
        { type: "model.delta", payload: { text: "Gone." } },
        { type: `turn.${name}`, payload },
      ];
      const input = text(lines.map((line) => JSON.stringify(line)));
      const { out } = await pipe(input, ["ingest", "--dialect", "runtime", "--json"], server.env);
      const { run_id } = JSON.parse(out) as { run_id: string };
      expect(await server.api.getRun(run_id)).toMatchObject({ state, reason });
    },
  );

  it("makes several runs of several, and ends as the worst of them", async () => {
    const lines = [
      ...[chunk("cut off"), '{"type":"run_start"}\n', chunk("one"), '{"reply":"one"}\n'],
      ...[chunk("two"), '{"reply":"","stop_reason":"cancelled"}\n'],
    ];
    const { code, out } = await pipe(lines.join(""), ["ingest", "--dialect", "loom", "--json"], server.env);
    expect(code).toBe(2);
    const ids = objectsOf<{ run_id: string }>(out).map(({ run_id }) => run_id);
    const records = await Promise.all(ids.map((run_id) => server.api.getRun(run_id)));
    expect(records.map(({ state, reason }) => [state, reason])).toEqual([
      ["error", "the input went on with another run"],
      ["done", null],
      ["aborted", "cancelled"],
    ]);
  });

  it("ends the runs that it has begun where another is refused", async () => {
    const tooLarge = { messages: [{ role: "user", content: "x".repeat(5 * 1024 * 1024) }] };
    const refused = {
      ...(JSON.parse(sampleLines(log)[0] ?? "") as Event),
      ...{ run_id: "run_01K0000000000000000000000B", type: "turn.submitted", payload: tooLarge },
    };
    const lines = [...sampleLines(log).slice(0, 4), JSON.stringify(refused)];
    const args = ["ingest", "--dialect", "runwire", "--json"];
    const { code, out, err } = await pipe(text(lines), args, server.env);
    expect({ code, err }).toMatchObject({ code: 1, err: expect.stringContaining("[KAI-REQUEST-SIZE-0001]") });
    const { run_id } = JSON.parse(out) as { run_id: string };
    const ended = { state: "error", reason: "another run was stopped" };
    expect(await server.api.getRun(run_id)).toMatchObject(ended);
  });

  it("stops reading when a person aborts the run, and ends with 2", async () => {
    const { run, run_id } = await ingesting(chunk("first"));
    await command("abort", run_id, "--reason", "enough");
    expect(await run.exited).toMatchObject({
      code: 2,
      err: expect.stringContaining(`${run_id} is aborted\n`),
    });
    expect((await server.api.getRun(run_id)).reason).toBe("enough");
  });

  it("reads no further while the run is paused, and goes on when it is redirected", async () => {
    const { run, run_id } = await ingesting(chunk("first"));
    await seen(run_id, saying("first"));
    await command("pause", run_id);
    run.type(`${chunk("second")}{"reply":"done"}\n`);
    run.close();
    await command("redirect", run_id, "elsewhere");
    expect((await run.exited).code).toBe(0);
    const events = await seen(
      run_id,
      ({ type, payload }) => type === "run.lifecycle" && (payload as { state: string }).state === "done",
    );
    const states = events
      .filter(({ type }) => type === "run.lifecycle")
      .map(({ payload }) => (payload as { state: string }).state);
    expect(states).toEqual(["running", "paused", "redirecting", "running", "done"]);
  });

  describe("with a child", () => {
    const line = (draft: Draft): string =>
      `${JSON.stringify({ ...(JSON.parse(sampleLines(log)[0] ?? "") as Event), ...draft })}\n`;
    const says = (words: string, child_id: string | null = null): string =>
      line({ type: "text.delta", payload: { text: words }, child_id });
    const ends = (child_id: string | null = null): string =>
      line({ type: "run.lifecycle", payload: { state: "done", reason: null }, child_id });
    const spawns = (child_id: string, by: string | null = null): string =>
      line({ type: "child.spawn", payload: { child_id }, child_id: by });

    async function begun(): Promise<{
      readonly run: Running;
      readonly run_id: string;
      readonly child_id: string;
    }> {
      const run = start(["ingest", "--dialect", "runwire", "--json"], server.env);
      run.type(says("first") + spawns("run_a") + says("mine", "run_a"));
      const [, run_id = ""] = await run.until(/"run_id":"(run_\w+)"/);
      const events = await seen(run_id, saying("mine"));
      return { run, run_id, child_id: events.find(saying("mine"))?.child_id ?? "" };
    }

    const textOf = async (run_id: string): Promise<string> => {
      const { events } = await server.api.events(run_id, { dialect: "runwire" });
      return (events as readonly Event[])
        .filter(({ type, child_id }) => type === "text.delta" && child_id === null)
        .map(({ payload }) => (payload as Facts).text)
        .join("");
    };

    it("goes on without one that a person aborts, and tells what is left out", async () => {
      const { run, run_id, child_id } = await begun();
      await command("abort", child_id);
      run.type(says("too late", "run_a") + says(" second") + ends("run_a") + ends());
      run.close();
      const { code, err } = await run.exited;
      expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining(`${run_id} is done\n`) });
      expect(err).toMatch(/the run has ended: run_a is aborted|not all of run_\w+ is stored/);
      expect(await textOf(run_id)).toBe("first second");
      expect((await server.api.getRun(child_id)).state).toBe("aborted");
    });

    it("waits with the end of one that a person has paused, and with nothing else", async () => {
      const { run, run_id, child_id } = await begun();
      await command("pause", child_id);
      run.type(ends("run_a") + says(" second"));
      await seen(run_id, saying(" second"));
      await command("resume", child_id);
      await seen(
        child_id,
        ({ type, payload }) => type === "run.lifecycle" && (payload as Facts).state === "done",
      );
      run.type(ends());
      run.close();
      expect((await run.exited).code).toBe(0);
      expect((await server.api.getRun(child_id)).state).toBe("done");
    });

    it("gets one on that a person redirects", async () => {
      const { run, child_id } = await begun();
      await command("redirect", child_id, "elsewhere");
      run.type(ends("run_a"));
      await seen(
        child_id,
        ({ type, payload }) => type === "run.lifecycle" && (payload as Facts).state === "done",
      );
      run.type(ends());
      run.close();
      expect((await run.exited).code).toBe(0);
    });

    it("leaves out one that the server does not let begin", async () => {
      const { run, run_id } = await begun();
      const names = ["run_a", ..."bcdefghijk"];
      for (const [i, name] of names.slice(1).entries()) run.type(spawns(name, names[i]));
      run.type(says(" second") + ends());
      run.close();
      const { code, err } = await run.exited;
      expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining("child cannot be spawned") });
      expect(await textOf(run_id)).toBe("first second");
    });
  });

  it.each([
    ["before the input ends", false],
    ["after it", true],
  ])("fails where its key is taken back while the run is paused, %s", async (_, isClosed) => {
    const keyed = await serveKeyed(join(folder, `keyed-${isClosed}`), "read,write", "read,write,control");
    const { url: RUNWIRE_URL, keys } = keyed;
    const [own = "", other = ""] = keys;
    const run = start(["ingest", "--dialect", "loom", "--json"], { RUNWIRE_URL, RUNWIRE_TOKEN: own });
    run.type(chunk("first"));
    const [, run_id = ""] = await run.until(/"run_id":"(run_\w+)"/);
    await runwire(["pause", run_id], { RUNWIRE_URL, RUNWIRE_TOKEN: other });
    run.type(`${chunk("second")}{"reply":"done"}\n`);
    if (isClosed) run.close();
    await keyed.revoke(own);
    const { code, err } = await run.exited;
    await keyed.stop();
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringMatching(
        new RegExp(`^${run_id} is running; .*\nrunwire: ${run_id}: credentials have ended.*\n$`),
      ),
    });
  });

  it("survives the server's end and start, and stores each line once", async () => {
    const { run, run_id } = await ingesting(chunk("0"));
    await seen(run_id, saying("0"));
    await server.again();
    for (let i = 1; i < 50; i++) run.type(chunk(String(i)));
    await seen(run_id, saying("49"));
    run.type('{"reply":"done"}\n');
    run.close();
    expect((await run.exited).code).toBe(0);
    const { out } = await command("tail", run_id, "--json", "--full", "--dialect", "loom");
    const said = out.split("\n").flatMap((line) => /"content":"(\d+)"/.exec(line)?.[1] ?? []);
    expect(said).toEqual(Array.from({ length: 50 }, (_, i) => String(i)));
  });

  it("writes what people answer in the dialect it reads, and not what the agent answered itself", async () => {
    const run = ingest("--answers");
    const own = '{"type":"tool_approval_response","call_id":"call-1","approved":true}\n';
    run.type(`${ask("call-1")}${own}${ask("call-2")}`);
    const waiting = async (): Promise<string> => {
      const { items } = await server.api.inbox();
      return items.find(({ request_id }) => request_id === "call-2")?.run_id ?? waiting();
    };
    const run_id = await waiting();
    await command("approve", run_id, "call-2", "--decision", "deny", "--reason", "no");
    await run.until(/\n/);
    run.type('{"reply":"done"}\n');
    run.close();
    const { code, out } = await run.exited;
    expect(code).toBe(0);
    expect(objectsOf(out)).toEqual([
      expect.objectContaining({
        type: "tool_approval_response",
        call_id: "call-2",
        approved: false,
        reason: "no",
      }),
    ]);
  });

  it("writes what people answer to one run where the agent has answered another under the same id", async () => {
    const run = start(["ingest", "--dialect", "runwire", "--answers"], server.env);
    const first = JSON.parse(sampleLines(log)[0] ?? "") as Event;
    const say = (type: string, payload: object, child_id: string | null = null): void =>
      run.type(`${JSON.stringify({ ...first, type, payload, child_id })}\n`);
    for (const child_id of ["run_a", "run_b"]) say("child.spawn", { child_id });
    say("approval.requested", { approval_id: "same" }, "run_a");
    say("approval.resolved", { approval_id: "same", decision: "once" }, "run_a");
    say("approval.requested", { approval_id: "same" }, "run_b");
    say("clarify.requested", { clarify_id: "last", question: "All there?" });
    // By then the first has its answer.
    const asked = async (id: string): Promise<string | undefined> =>
      (await server.api.inbox()).items.find(({ request_id }) => request_id === id)?.run_id;
    await expect.poll(() => asked("last")).toBeDefined();
    const by = (await asked("same")) ?? "";
    await command("approve", by, "same", "--decision", "deny");
    await run.until(/"approval\.resolved".*"deny"/);
    say("run.lifecycle", { state: "done", reason: null });
    run.close();
    const { code, out } = await run.exited;
    expect({ code, lines: out.split("\n").length }).toEqual({ code: 0, lines: 2 });
  });

  it("goes into the run that was made for it", async () => {
    const { run_id } = await server.api.createRun({ prompt: "x", producer: "external" });
    const args = ["ingest", "--dialect", "runwire", "--run", run_id];
    expect((await pipe(text(sampleLines(log)), args, server.env)).code).toBe(0);
    expect((await server.api.getRun(run_id)).state).toBe("done");
    expect(await pipe(text(sampleLines(log)), args, server.env)).toMatchObject({
      code: 1,
      err: expect.stringContaining("KAI-RUN-ENDED-0001"),
    });
  });

  it.each([
    ["preview", `${chunk("x")}{"reply":"done"}\n`, "done", 0],
    ["preview", '{"type":"turn.completed","payload":{}}\n', "done", 0],
    ["required", `${chunk("x")}{"reply":"done"}\n`, "error", 1],
  ] as const)("ends a run with the gate %s as %j says it", async (planning_gate, input, state, code) => {
    const { run_id } = await server.api.createRun({ prompt: "x", producer: "external", planning_gate });
    const dialect = input.includes("turn.completed") ? "runtime" : "loom";
    const args = ["ingest", "--dialect", dialect, "--run", run_id];
    expect((await pipe(input, args, server.env)).code).toBe(code);
    expect(await server.api.getRun(run_id)).toMatchObject({
      state,
      reason: state === "done" ? null : "it ended without a plan that was approved",
    });
    const { events } = await server.api.events(run_id);
    expect(events.some(saying("x"))).toBe(input.includes("message_chunk"));
  });

  it("says nothing again that people answered before, to whoever wrote the run then", async () => {
    const { run_id } = await server.api.createRun({ prompt: "x", producer: "external" });
    await server.api.append(run_id, [asking("before")]);
    await server.api.answerApproval(run_id, "before", { decision: "once" });
    const run = ingest("--answers", "--run", run_id);
    run.type(ask("now"));
    await expect
      .poll(async () => (await server.api.inbox()).items.map(({ request_id }) => request_id))
      .toContain("now");
    await server.api.answerApproval(run_id, "now", { decision: "deny" });
    await run.until(/\n/);
    run.type('{"reply":"done"}\n');
    run.close();
    const { code, out } = await run.exited;
    expect(code).toBe(0);
    expect(objectsOf(out)).toMatchObject([{ call_id: "now", approved: false }]);
  });

  it("reads nothing into a run that a person has paused, until that goes on", async () => {
    const { run_id } = await server.api.createRun({ prompt: "x", producer: "external" });
    await server.api.redirect(run_id, "elsewhere");
    await server.api.append(run_id, [{ type: "run.lifecycle", payload: { state: "running", reason: null } }]);
    await server.api.append(run_id, [asking("first"), asking("second")]);
    await server.api.pause(run_id);
    const run = ingest("--answers", "--run", run_id);
    run.type(`${chunk("late")}{"reply":"done"}\n`);
    run.close();
    await expect.poll(() => run.err).toContain(`${run_id} is paused`);
    // Whoever hears these has heard all that was before them, and has had time to say something to it.
    for (const id of ["first", "second"]) {
      await server.api.answerApproval(run_id, id, { decision: "once" });
      await run.until(new RegExp(`"${id}"`));
    }
    expect((await server.api.getRun(run_id)).state).toBe("paused");
    await server.api.resume(run_id);
    expect((await run.exited).code).toBe(0);
    const { events } = await server.api.events(run_id);
    const paused = events.findIndex(({ payload }) => (payload as Facts).state === "paused");
    expect(events.slice(paused + 1).filter(({ type }) => type === "run.lifecycle")).toMatchObject([
      { payload: { state: "running", reason: "resumed" } },
      { payload: { state: "done" } },
    ]);
    expect(events.findIndex(saying("late"))).toBeGreaterThan(paused);
  });

  it("waits with the end of a run whose plan a person must approve", async () => {
    const { run_id } = await server.api.createRun({
      prompt: "x",
      producer: "external",
      planning_gate: "required",
    });
    const run = start(["ingest", "--dialect", "runwire", "--run", run_id], server.env);
    const [first] = sampleLines(log).map((line) => JSON.parse(line) as Event);
    const plan = {
      type: "plan.proposal",
      payload: { plan: { id: "p1", steps: [{ id: "s1", title: "Dig" }] } },
    };
    const last = { type: "run.lifecycle", payload: { state: "done", reason: null } };
    for (const said of [first, { ...first, ...plan }, { ...first, ...last }])
      run.type(`${JSON.stringify(said)}\n`);
    run.close();
    expect((await command("approve", run_id)).code).toBe(0);
    expect((await run.exited).code).toBe(0);
    expect((await server.api.getRun(run_id)).state).toBe("done");
  });

  it.each([
    [["--url", "http://127.0.0.1:9"], "no server answers"],
    [["--run", "run_nobody"], "run not found"],
    [["--answers", "--json"], "choose one"],
    [["--agent", "a b"], "--agent"],
  ])("says in one line what is wrong with %j", async (args, named) => {
    const { code, out, err } = await pipe(chunk("x"), ["ingest", "--dialect", "loom", ...args], server.env);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err.trim().split("\n")).toHaveLength(1);
    expect(err).toContain(named);
  });
});

describe("a run of any dialect", () => {
  let run_id: string;

  beforeAll(async () => {
    const { out } = await pipe(
      text(sampleLines(loom)),
      ["ingest", "--dialect", "loom", "--json"],
      server.env,
    );
    run_id = (JSON.parse(out) as { run_id: string }).run_id;
  });

  it.each(spoken)("is tailed, recorded and replayed in $name as the server says it", async ({ name }) => {
    const replay = await fetch(`${server.url}/v1/agent/runs/${run_id}/replay.jsonl?dialect=${name}`);
    const said = await replay.text();
    expect(await command("tail", run_id, "--json", "--dialect", name)).toMatchObject({ code: 0, out: said });
    const path = join(folder, `recorded.${name}`);
    const recorded = await command("record", run_id, "-o", path, "--dialect", name);
    const count = said.split("\n").length - 1;
    expect(recorded).toEqual({ code: 0, out: "", err: `${run_id} is done; ${count} lines in ${path}\n` });
    expect(readFileSync(path, "utf8")).toBe(said);
    const passed = await command("record", run_id, "-o", "-", "--dialect", name);
    expect(passed).toEqual({ code: 0, out: said, err: `${run_id} is done; ${count} lines on stdout\n` });
    const args = ["replay", run_id, "--speed", "max", "--json", "--dialect", name];
    expect((await command(...args)).out).toBe(said);
  });

  it("is replayed as it was watched", async () => {
    const watched = (await command("tail", run_id)).out.replace(/ {2}answer with: .*\n/, "");
    expect((await command("replay", run_id, "--speed", "max")).out).toBe(watched);
  });
});

describe("runwire record", () => {
  it("follows a run to its end across a restart of the server, and does not write over a file", async () => {
    const { run, run_id } = await ingesting(chunk("first"));
    const path = join(folder, "live.jsonl");
    const record = start(["record", run_id, "-o", path, "--full"], server.env);
    await expect.poll(() => existsSync(path) && readFileSync(path, "utf8")).toContain("first");
    await server.again();
    run.type(`${chunk("second")}{"reply":"done"}\n`);
    run.close();
    const recorded = await record.exited;
    expect(recorded.code).toBe(0);
    expect(recorded.err).toMatch(
      /^runwire: the connection to .* was lost; trying again\nrunwire: connected again\nrun_\w+ is done; /,
    );
    const replay = await fetch(
      `${server.url}/v1/agent/runs/${run_id}/replay.jsonl?dialect=runwire&detail=full`,
    );
    expect(readFileSync(path, "utf8")).toBe(await replay.text());
    expect(await command("record", run_id, "-o", path)).toMatchObject({
      code: 1,
      err: expect.stringContaining("it is there already"),
    });
    await run.exited;
  });

  it("leaves whole lines however it is ended", async () => {
    const { run, run_id } = await ingesting(chunk("first"));
    for (const [signal, code] of [
      ["SIGINT", 130],
      ["SIGKILL", null],
    ] as const) {
      const path = join(folder, signal);
      const record = start(["record", run_id, "-o", path], server.env);
      await expect.poll(() => existsSync(path) && readFileSync(path, "utf8")).toContain("first");
      record.kill(signal);
      expect((await record.exited).code).toBe(code);
      const lines = readFileSync(path, "utf8").split("\n");
      expect(lines.pop()).toBe("");
      for (const line of lines) expect(JSON.parse(line)).toMatchObject({ run_id });
    }
    run.close();
    await run.exited;
  });
});

it("a run keeps nothing of the name that the wire had for it", async () => {
  const { out } = await pipe(
    text(sampleLines(log)),
    ["ingest", "--dialect", "runwire", "--json"],
    server.env,
  );
  expect(out).not.toContain(sampleRun);
});
