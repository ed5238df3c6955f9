// What the agent tells of its own governance: who let a tool run, what it was held to, what hooks said, which commands
// ran and which files have changed. Facts in the log, and said by the runtime dialect as they are.

import { createHash } from "node:crypto";
import {
  builtInTools,
  checkedTool,
  clarifyTool,
  demoModel,
  demoTools,
  engine,
  type HookCommand,
  spawnTool,
  type Tool,
} from "@runwire/engine";
import { type Draft, type Event, type Facts, strictSchemaVersion, validateRuntime } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { afterAll, describe, expect, it, vi } from "vitest";
import { allEvents, append, call, control, createRun } from "./calls.js";
import { readAll, streamPath } from "./readers.js";
import { calling, ended, lastState, ofType, script, scriptedModel, start, waitFor } from "./scripted.js";
import { underTest } from "./under-test.js";

/** Says what it was asked to. */
const sayTool: Tool = {
  name: "note.say",
  description: "says it",
  effect: "destructive",
  input_schema: { type: "object" },
  run: async (input) => input,
};

/** What has really run: names of tools, with their inputs. */
const ran: unknown[] = [];

/** A tool for each hook, so that each hook is alone. */
const hookedTool = (name: string): Tool =>
  checkedTool<{ readonly n: number }>({
    name,
    description: "gives its number",
    effect: "destructive",
    input_schema: {
      type: "object",
      required: ["n"],
      additionalProperties: false,
      properties: { n: { type: "number" } },
    },
    async run({ n }) {
      ran.push([name, n]);
      if (n < 0) throw new Error("It is below zero.");
      return { n };
    },
  });

const hook = (tool: string, script: string, more: Partial<HookCommand> = {}): HookCommand => ({
  name: tool.slice("try.".length),
  point: "pre_tool_use",
  tools: [tool],
  command: ["/bin/sh", "-c", script],
  timeoutMs: 5000,
  required: false,
  ...more,
});

vi.stubEnv("RUNWIRE_TEST_SECRET", "not to be seen");
afterAll(() => void vi.unstubAllEnvs());
const hooks: readonly HookCommand[] = [
  hook("try.refused", "echo 'not on Mondays' >&2; exit 2"),
  hook("try.changed", `echo '{"input": {"n": 7}}'`),
  hook("try.unfit", `echo '{"input": {"n": "seven"}}'`),
  hook("try.broken", "echo oops >&2; exit 1"),
  hook("try.needed", "exit 1", { required: true }),
  hook("try.slow", "sleep 60", { timeoutMs: 50 }),
  hook("try.talk", "echo fine"),
  hook("try.missing", "", { command: ["/nowhere/to/be/found"] }),
  hook("try.withheld", "echo 'it has a name in it' >&2; exit 2", { point: "post_tool_use" }),
  hook("try.failing", "echo 'ask the owner' >&2; exit 2", { point: "post_tool_failure" }),
  hook("try.told", "cat >&2; env | cut -d= -f1 | sort | tr '\\n' ' ' >&2; exit 2"),
];

const own = builtInTools({ shell: {}, web: { resolve: async () => ["10.0.0.7"] } });
const agent = engine({
  modelOf: (name) => (name === "demo" ? demoModel({ wordMs: 0 }) : scriptedModel),
  tools: [
    ...own,
    ...demoTools({ searchMs: 0 }),
    clarifyTool,
    spawnTool,
    sayTool,
    ...hooks.flatMap(({ tools }) => tools.map(hookedTool)),
  ],
  hooks,
  planningGate: "off",
});
const server = underTest(
  (settings: Parameters<typeof startGateway>[0], clock) => startGateway(settings, clock, agent),
  // That a workspace is too deep for a checkpoint is no news here.
  { log: "error" },
);

const governance = /^(?:permission|sandbox|hook|process|artifact|tool)\./;

/** The run's messages in the runtime event stream. Each is checked, also by what only the strict profile asks for. */
async function messagesOf(run_id: string): Promise<readonly Facts[]> {
  const { heard } = await readAll("sse", server.url, streamPath({ run_id, dialect: "runtime" }));
  return heard.map(({ data }) => {
    const message = JSON.parse(data) as Facts;
    expect(validateRuntime(message)).toEqual([]);
    if (governance.test(String(message.type))) {
      const strict = { ...message, schemaVersion: strictSchemaVersion };
      expect([message, validateRuntime(strict, { profile: "strict" })]).toEqual([message, []]);
    }
    return message;
  });
}

/** Facts of a family, with the call they are of. */
const factsOf = (events: readonly Event[], family: string): readonly Facts[] =>
  events
    .filter(({ type }) => type.startsWith(`${family}.`))
    .map(({ type, payload, scope }) => ({ type, ...payload, ...scope }));

async function run(prompt: string, asked: Facts = {}): Promise<readonly Event[]> {
  const events = await ended(server.url, await start(server.url, prompt, asked));
  expect(lastState(events)).toMatchObject({ state: "done" });
  return events;
}

describe("a call's permission", () => {
  it.each([
    ["never", "note.say", "allowed", "approvals-never"],
    ["destructive", "file.list", "allowed", "read-only"],
  ])("is told also where nobody is asked: %s, %s [RW-GOVERN-1]", async (approvals, tool, policy, reason) => {
    const events = await run(calling(tool), { approvals });
    const [start] = ofType(events, "tool.start");
    const [evaluated, ...more] = factsOf(events, "permission");
    expect(more).toEqual([]);
    expect(evaluated).toMatchObject({ toolName: tool, policy, reason, approvals });
    expect(evaluated?.tool_call_id).toBe(start?.call_id);
    const types = events.map(({ type }) => type);
    expect(types.indexOf("permission.evaluated")).toBeLessThan(types.indexOf("tool.start"));
  });

  it("is told to be asked for, and then to stand for the session [RW-GOVERN-1]", async () => {
    const twice = script(
      { calls: [{ tool: "note.say", input: {} }] },
      { calls: [{ tool: "note.say", input: {} }] },
    );
    const run_id = await start(server.url, twice, { approvals: "always" });
    const [asked] = await waitFor(server.url, run_id, "approval.requested");
    await control(server.url, run_id, `approvals/${asked?.approval_id}`, { decision: "session" });
    const facts = factsOf(await ended(server.url, run_id), "permission");
    expect(facts).toMatchObject([
      { policy: "ask", reason: "approvals-always", effect: "destructive" },
      { policy: "allowed", reason: "standing-allowance", approved: { approval_id: asked?.approval_id } },
    ]);
    const told = (await messagesOf(run_id))
      .map(({ type }) => type)
      .filter((type) => String(type).startsWith("perm"));
    expect(told).toEqual([
      "permission.evaluated",
      "permission.requested",
      "permission.resolved",
      "permission.evaluated",
    ]);
  });

  it("is told to be denied for a tool that the run was not given [RW-GOVERN-1]", async () => {
    const events = await run(calling("note.say"), { tools: ["file.*"] });
    expect(factsOf(events, "permission")).toMatchObject([{ policy: "denied", reason: "tool-list" }]);
    expect(ofType(events, "tool.start")).toEqual([]);
  });
});

describe("a tool's sandbox", () => {
  it("is told with its start, where it has one [RW-GOVERN-2]", async () => {
    const calls = ["file.list", "shell", "note.say"].map((tool) => ({
      tool,
      input: tool === "shell" ? { command: "true" } : {},
    }));
    const events = await run(script({ calls }));
    const facts = factsOf(events, "sandbox");
    expect(facts.map(({ toolName }) => toolName).toSorted()).toEqual(["file.list", "shell"]);
    expect(facts.find(({ toolName }) => toolName === "shell")).toMatchObject({
      type: "sandbox.applied",
      profile: { filesystem: { access: "unrestricted" }, network: { access: "unrestricted" } },
    });
  });

  it.each([
    ["file.read", { path: "/etc/passwd" }, "outside-workspace"],
    ["file.write", { path: "../x", content: "" }, "outside-workspace"],
    ["web.fetch", { url: "http://intra.example.com/" }, "private-host"],
    ["web.fetch", { url: "file:///etc/passwd" }, "scheme"],
  ])("that refuses is told as what it is: %s %j [RW-GOVERN-2]", async (tool, input, violation) => {
    const events = await run(calling(tool, input));
    const [applied, broken] = factsOf(events, "sandbox");
    const [end] = ofType(events, "tool.end");
    expect(broken).toMatchObject({
      type: "sandbox.violation",
      toolName: tool,
      violation,
      message: (end?.error as Facts | undefined)?.message,
      tool_call_id: end?.call_id,
    });
    expect(applied).toMatchObject({ type: "sandbox.applied", profile: { name: broken?.profile } });
    expect(end).toMatchObject({ ok: false, error: { kind: "refused" } });
  });

  it("is not blamed for a failure of another kind [RW-GOVERN-2]", async () => {
    const events = await run(calling("file.read", { path: "missing" }));
    expect(factsOf(events, "sandbox").map(({ type }) => type)).toEqual(["sandbox.applied"]);
  });
});

describe("a hook", () => {
  /** The hook's own facts, and how its call ended. */
  async function hooked(tool: string, n = 1) {
    ran.length = 0;
    const events = await run(calling(tool, { n }));
    const facts = factsOf(events, "hook").filter(({ name }) => name === tool.slice("try.".length));
    const [end] = ofType(events, "tool.end");
    return { events, facts, end, error: end?.error as Facts | undefined };
  }

  it("that refuses keeps the tool from running, and the model is told why [RW-GOVERN-3]", async () => {
    const { events, facts, error } = await hooked("try.refused");
    expect(ran).toEqual([]);
    expect(ofType(events, "tool.start")).toEqual([]);
    expect(error).toMatchObject({ kind: "denied", message: "The tool was not run: not on Mondays." });
    expect(facts).toMatchObject([
      { type: "hook.started", point: "pre_tool_use", toolName: "try.refused" },
      { type: "hook.completed", outcome: "refused", reason: "not on Mondays" },
    ]);
    const [first, second] = facts;
    expect(first?.hook_id).toBe(second?.hook_id);
    expect(second?.duration_ms).toEqual(expect.any(Number));
  });

  it("may give the tool another input [RW-GOVERN-3]", async () => {
    const { events, facts } = await hooked("try.changed");
    expect(ran).toEqual([["try.changed", 7]]);
    expect(ofType(events, "tool.start")).toMatchObject([{ input: { n: 7 } }]);
    expect(facts.at(-1)).toMatchObject({ outcome: "changed" });
  });

  it.each([
    ["try.unfit", "input"],
    ["try.broken", "exit"],
    ["try.slow", "timeout"],
    ["try.missing", "start"],
  ])("that fails is told to have failed, and the call goes on: %s [RW-GOVERN-3]", async (tool, reason) => {
    const { facts, end } = await hooked(tool);
    expect(facts.at(-1)).toMatchObject({ type: "hook.failed", reason, required: false });
    expect(ran).toEqual([[tool, 1]]);
    expect(end).toMatchObject({ ok: true });
  });

  it("that fails and is required is a refusal [RW-GOVERN-3]", async () => {
    const { facts, error } = await hooked("try.needed");
    expect(ran).toEqual([]);
    expect(facts.at(-1)).toMatchObject({ type: "hook.failed", required: true, exit_code: 1 });
    expect(error).toMatchObject({ kind: "denied" });
  });

  it("that only talks passes [RW-GOVERN-3]", async () => {
    const { facts } = await hooked("try.talk");
    expect(facts.map(({ type, outcome }) => [type, outcome])).toEqual([
      ["hook.started", undefined],
      ["hook.completed", "passed"],
    ]);
  });

  it("may withhold a result, and add to a failure [RW-GOVERN-3]", async () => {
    const withheld = await hooked("try.withheld");
    expect(ran).toEqual([["try.withheld", 1]]);
    expect(withheld.end?.output).toBeUndefined();
    expect(withheld.error).toMatchObject({
      kind: "denied",
      message: "The tool was run, but its result is withheld: it has a name in it.",
    });
    const failing = await hooked("try.failing", -1);
    expect(failing.error).toMatchObject({ message: "It is below zero.\nask the owner." });
  });

  it("is handed the call, and nothing of the server's environment [RW-GOVERN-3]", async () => {
    const { events, error } = await hooked("try.told", 3);
    const told = String(error?.message);
    const [given = "", env = ""] = told.slice(told.indexOf("{")).split("\n");
    expect(JSON.parse(given)).toEqual({
      point: "pre_tool_use",
      run_id: events[0]?.run_id,
      call_id: ofType(events, "tool.end")[0]?.call_id,
      tool: "try.told",
      input: { n: 3 },
    });
    expect(
      env
        .replace(".", "")
        .trim()
        .split(" ")
        .filter((name) => !/^(_|OLDPWD|PWD|SHLVL)$/.test(name)),
    ).toEqual(["HOME", "LANG", "PATH"]);
  });

  it("of the engine's own looks at every input first [RW-GOVERN-3]", async () => {
    const { events, facts, error } = await hooked("try.told", "three" as never);
    expect(facts).toEqual([]);
    expect(ran).toEqual([]);
    expect(factsOf(events, "hook")).toMatchObject([
      { type: "hook.started", name: "input-check", point: "pre_tool_use" },
      { type: "hook.completed", name: "input-check", outcome: "refused" },
    ]);
    expect(error).toMatchObject({ kind: "invalid-input" });
    expect(ofType(events, "tool.start")).toEqual([]);
  });
});

describe("a command", () => {
  const typesOf = (messages: readonly Facts[], family: RegExp): readonly unknown[] =>
    messages.map(({ type }) => type).filter((type) => family.test(String(type)));

  it("is a process, and what it prints is that process's output [RW-GOVERN-4]", async () => {
    const command = "echo one; echo two >&2; exit 3";
    const run_id = await start(server.url, calling("shell", { command }));
    const events = await ended(server.url, run_id);
    const [started, completed] = factsOf(events, "process");
    expect(started).toMatchObject({ type: "process.started", command, cwd: ".", pid: expect.any(Number) });
    expect(completed).toMatchObject({ type: "process.completed", exit_code: 3 });
    expect(completed?.process_id).toBe(started?.process_id);
    const printed = events.filter(({ scope }) => scope?.process_id === started?.process_id);
    const text = (of: readonly Facts[]): string => of.map((facts) => facts.text ?? "").join("");
    expect(text(printed.map(({ payload }) => payload))).toContain("one\n");
    // In the core it is what it always was; in the runtime stream each piece is said once.
    const messages = await messagesOf(run_id);
    const outputs = messages.filter(({ type }) => type === "process.output");
    expect(text(outputs.map(({ payload }) => payload as Facts))).toBe(
      text(printed.map(({ payload }) => payload)),
    );
    expect(outputs[0]).toMatchObject({
      processId: started?.process_id,
      toolCallId: started?.tool_call_id,
      payload: { stream: "combined" },
    });
    expect(outputs[0]).not.toHaveProperty("derivedFrom");
    expect([...new Set(typesOf(messages, /^(?:permission|sandbox|hook|process|tool)\./))]).toEqual([
      "tool.started",
      "permission.evaluated",
      "hook.started",
      "hook.completed",
      "sandbox.applied",
      "tool.args",
      "tool.progress",
      "process.started",
      "process.output",
      "process.completed",
      "tool.result",
    ]);
  });

  it("that is ended with its run is told so to readers of the runtime stream [RW-GOVERN-4]", async () => {
    const run_id = await start(server.url, calling("shell", { command: "sleep 60" }));
    await waitFor(server.url, run_id, "process.started");
    await control(server.url, run_id, "abort");
    const messages = await messagesOf(run_id);
    expect(typesOf(messages, /^process\.|^tool\.failed/)).toEqual([
      "process.started",
      "process.terminated",
      "tool.failed",
    ]);
    expect(messages.find(({ type }) => type === "process.terminated")).toHaveProperty("derivedFrom");
  });

  it("that another direction has made pointless is told to have been stopped [RW-GOVERN-4]", async () => {
    const run_id = await start(server.url, calling("shell", { command: "sleep 60" }));
    await waitFor(server.url, run_id, "process.started");
    await control(server.url, run_id, "redirect", { instruction: script() });
    const facts = factsOf(await ended(server.url, run_id), "process");
    expect(facts).toMatchObject([
      { type: "process.started" },
      { type: "process.terminated", reason: "aborted" },
    ]);
  });
});

describe("a changed file", () => {
  const files = (...commands: readonly string[]): string =>
    script(...commands.map((command) => ({ calls: [{ tool: "shell", input: { command } }] })));
  const blob = async (ref: unknown): Promise<Buffer> => {
    const response = await fetch(`${server.url}/v1/blobs/${ref}`);
    expect(response.status).toBe(200);
    return Buffer.from(await response.arrayBuffer());
  };
  const hashed = (text: string): string => `sha256:${createHash("sha256").update(text).digest("hex")}`;

  it("is an artifact with its content, its version and its difference [RW-GOVERN-5]", async () => {
    const write = (content: string) => ({
      calls: [{ tool: "file.write", input: { path: "notes/a.md", content } }],
    });
    const events = await run(script(write("one\ntwo\n"), write("one\n2\n")));
    const [made, changed, ...more] = factsOf(events, "artifact");
    expect(more).toEqual([]);
    expect(made).toMatchObject({
      path: "notes/a.md",
      change: "created",
      bytes: 8,
      media_type: "text/markdown",
      version_id: hashed("one\ntwo\n"),
      preview: "one\ntwo\n",
      tool_call_id: ofType(events, "tool.end")[0]?.call_id,
    });
    expect(changed).toMatchObject({
      artifact_id: made?.artifact_id,
      change: "modified",
      version_id: hashed("one\n2\n"),
      previous_version_id: made?.version_id,
    });
    expect(String(await blob(made?.read_ref))).toBe("one\ntwo\n");
    expect(String(await blob(changed?.read_ref))).toBe("one\n2\n");
    expect(String(await blob(changed?.diff_ref))).toBe(
      "--- a/notes/a.md\n+++ b/notes/a.md\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
    );
    const said = (await messagesOf(String(events[0]?.run_id))).filter(
      ({ type }) => type === "artifact.changed",
    );
    expect(said.map(({ artifactId }) => artifactId)).toEqual([made?.artifact_id, made?.artifact_id]);
  });

  it("is found whatever changed it, and told with the call that did [RW-GOVERN-5]", async () => {
    const events = await run(
      files(
        "echo a > a.txt; printf '\\000\\001' > b.bin; mkdir c; echo d > c/d.txt",
        "rm a.txt; echo e >> c/d.txt; touch b.bin",
        "true",
      ),
    );
    const ends = ofType(events, "tool.end").map(({ call_id }) => call_id);
    const told = factsOf(events, "artifact").map(({ path, change, tool_call_id }) => [
      ends.indexOf(tool_call_id),
      path,
      change,
    ]);
    expect(told).toEqual([
      [0, "a.txt", "created"],
      [0, "b.bin", "created"],
      [0, "c/d.txt", "created"],
      [1, "a.txt", "deleted"],
      [1, "c/d.txt", "modified"],
    ]);
    const facts = factsOf(events, "artifact");
    expect(await blob(facts[1]?.read_ref)).toEqual(Buffer.from([0, 1]));
    expect(facts[1]).toMatchObject({ media_type: "application/octet-stream" });
    expect(facts[1]).not.toHaveProperty("diff_ref");
    expect(String(await blob(facts[3]?.diff_ref))).toContain("-a\n");
    expect(facts[3]).not.toHaveProperty("read_ref");
    // Facts come before the end of their call, and the hook that found them is told around them.
    const types = events.map(({ type }) => type);
    expect(types.indexOf("artifact.changed")).toBeLessThan(types.indexOf("tool.end"));
    const looks = factsOf(events, "hook").filter(
      ({ name, type }) => name === "file-changes" && type === "hook.completed",
    );
    expect(looks.map(({ files }) => files)).toEqual([3, 2, 0]);
  });

  it("that is too large, or one of too many, is told with less [RW-GOVERN-5]", async () => {
    const events = await run(
      files(
        "head -c 5000000 /dev/zero > large",
        "i=0; while [ $i -lt 60 ]; do echo $i > f$i; i=$((i+1)); done",
      ),
    );
    const [large, ...many] = factsOf(events, "artifact");
    expect(large).toMatchObject({
      path: "large",
      bytes: 5_000_000,
      version_id: expect.stringMatching(/^sha256:/),
    });
    expect(large).not.toHaveProperty("read_ref");
    expect(many).toHaveLength(51);
    expect(many.at(-1)).toMatchObject({ change: "more", more: 10 });
  });

  it("is told once, also where several calls work at the same time, and is the same in children [RW-GOVERN-5]", async () => {
    const write = (path: string) => ({ tool: "file.write", input: { path, content: path } });
    const paths = ["1", "2", "3", "4", "5", "6"];
    const child = script({ calls: [write("1")] });
    const events = await run(
      script(
        { calls: paths.map(write) },
        { calls: [{ tool: "shell", input: { command: "rm 1" } }] },
        {
          calls: [{ tool: "spawn", input: { prompt: child } }],
        },
      ),
    );
    const facts = factsOf(events, "artifact");
    expect(
      facts
        .slice(0, 6)
        .map(({ path }) => path)
        .toSorted(),
    ).toEqual(paths);
    expect(facts.slice(6).map(({ path, change }) => [path, change])).toEqual([
      ["1", "deleted"],
      ["1", "created"],
    ]);
    expect(new Set(facts.filter(({ path }) => path === "1").map(({ artifact_id }) => artifact_id)).size).toBe(
      1,
    );
  });

  it("goes with its run: what was kept of it is erased [RW-GOVERN-5]", async () => {
    const events = await run(files("echo only here $$ > x"));
    const [fact] = factsOf(events, "artifact");
    await blob(fact?.read_ref);
    await call(server.url, "DELETE", `/v1/agent/runs/${events[0]?.run_id}`);
    expect((await fetch(`${server.url}/v1/blobs/${fact?.read_ref}`)).status).toBe(404);
  });

  it("brings its content along, which nobody can do over a wire [RW-GOVERN-5]", async () => {
    const run_id = await createRun(server.url);
    const attached = { read_ref: { content: "mine", media_type: "text/plain" } };
    await append(server.url, run_id, { type: "artifact.changed", payload: { path: "x" }, attached } as Draft);
    expect(ofType(await allEvents(server.url, run_id), "artifact.changed")).toEqual([{ path: "x" }]);
    await control(server.url, run_id, "abort");
  });

  it("is no reason to stop where the files cannot be told [RW-GOVERN-5]", async () => {
    const deep = Array.from({ length: 20 }, () => "d").join("/");
    const events = await run(files(`mkdir -p ${deep}; echo x > ${deep}/x`));
    expect(factsOf(events, "hook").at(-1)).toMatchObject({ type: "hook.failed", name: "file-changes" });
    expect(ofType(events, "tool.end")).toMatchObject([{ ok: true }]);
  });
});

describe("a run of the demo", () => {
  it("tells what governs each of its calls, in order and soundly [RW-GOVERN-1] [RW-GOVERN-5]", async () => {
    const prompt = "help me choose a database and save it";
    const run_id = await start(server.url, prompt, { model: "demo", tools: ["demo.*", "file.*"] });
    const messages = await messagesOf(run_id);
    const write = messages.find(
      ({ type, payload }) => type === "tool.started" && (payload as Facts).toolName === "file.write",
    );
    const told = messages
      .filter(({ type, toolCallId }) => governance.test(String(type)) && toolCallId === write?.toolCallId)
      .map(({ type }) => type);
    // What the model wrote of its arguments came before.
    expect(told.slice(told.indexOf("permission.evaluated"))).toEqual([
      "permission.evaluated",
      "hook.started",
      "hook.completed",
      "sandbox.applied",
      "tool.args",
      "tool.progress",
      "hook.started",
      "artifact.changed",
      "hook.completed",
      "tool.result",
    ]);
  });
});
