// Tools as an operator gives them to the agent: which there are, how they end, and what a crash makes of them.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { engine, type Tool } from "@runwire/engine";
import { type Facts, RunwireError } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Loopback, loopback } from "../loopback.js";
import { call, codeOf, control, messageOf } from "./calls.js";
import { type ChatProvider, chatProvider } from "./chat-provider.js";
import { type McpHttp, mcpHttp } from "./mcp-http.js";
import {
  calling,
  ended,
  lastState,
  ofType,
  script,
  scriptedModel,
  seenBy,
  start,
  waitFor,
} from "./scripted.js";
import { type ServerProcess, startServer } from "./server-process.js";
import { underTest } from "./under-test.js";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "runwire-agent-tools-"));
let page: Loopback;
let provider: ChatProvider;
let remote: McpHttp;
let server: ServerProcess;

const mcpProgram = here("../../../engine/dist/testing/mcp-stdio.js");
const mcp = () => ({
  far: { url: remote.url, headers: { Authorization: "Bearer of-mcp" } },
  test: { command: process.execPath, args: [mcpProgram] },
  twice: { command: process.execPath, args: [mcpProgram, "twice"] },
  gone: { url: "http://127.0.0.1:1/mcp" },
});

const gate = join(folder, "gate");
/** Looks at `file.list`, and is done when somebody opens the gate. */
const hooks = [
  {
    name: "gate",
    point: "pre_tool_use",
    tools: ["file.list"],
    command: ["/bin/sh", "-c", `until [ -e ${gate} ]; do sleep 0.02; done`],
    timeout_ms: 60_000,
    required: true,
  },
];

/** A server as operators start it, on a model that does as it is told. */
function serve(): Promise<ServerProcess> {
  const variables = [
    `RUNWIRE_OPENAI_BASE_URL=${provider.url}`,
    "RUNWIRE_MODEL=local/scripted",
    `RUNWIRE_MCP=${JSON.stringify(mcp())}`,
    `RUNWIRE_HOOKS=${JSON.stringify(hooks)}`,
    `RUNWIRE_FETCH_HOSTS=127.0.0.1:${page.port}`,
  ];
  const command = [
    "/usr/bin/env",
    ...variables,
    process.execPath,
    here("../../../cli/bin/runwire.js"),
    "serve",
  ];
  return startServer(command, join(folder, "data"), ["--shell", "on"]);
}

beforeAll(async () => {
  const hello: RequestListener = (_, response) =>
    response.setHeader("Content-Type", "text/plain").end("hello from inside");
  page = await loopback(createServer(hello));
  provider = await chatProvider();
  remote = await mcpHttp();
  server = await serve();
});

afterAll(async () => {
  await server.kill("SIGTERM");
  await Promise.all([provider, remote, page].map((one) => one.close()));
  rmSync(folder, { recursive: true });
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** What the call came to, as the log has it. */
const endsIn = async (run_id: string): Promise<readonly Facts[]> =>
  ofType(await ended(server.url, run_id), "tool.end");

describe("tools by settings", () => {
  it("are those of every MCP server that gives them, and runs go on without the others", async () => {
    const run_id = await start(server.url, calling("test.echo", { city: "Rome" }));
    const events = await ended(server.url, run_id);
    expect(ofType(events, "tool.start")).toMatchObject([{ tool: "test.echo", skill_id: "test@1.0.0" }]);
    expect(ofType(events, "tool.end")).toMatchObject([
      { ok: true, output: { content: [{ type: "text", text: '{"city":"Rome"}' }] } },
    ]);
    const { tools } = seenBy(events);
    expect(tools).toEqual(expect.arrayContaining(["shell", "web_fetch", "file_read", "test_add"]));
    expect(tools.filter((name) => name.startsWith("gone"))).toEqual([]);
    expect(server.stderr).toContain('"what":"mcp server not reached","server":"gone"');
    expect(server.stderr).toContain('"what":"mcp server not reached","server":"twice"');
    // What such a server would bring may be asked for; what no server would may not.
    await ended(server.url, await start(server.url, script(), { tools: ["gone.*", "test.echo"] }));
    const unknown = { prompt: "x", tools: ["shel"] };
    const refused = await call(server.url, "POST", "/v1/agent/runs", unknown);
    expect([refused.status, codeOf(refused)]).toEqual([422, "KAI-RUN-TOOL-0003"]);
    expect(messageOf(refused)).toMatch(/"shel"; there is .+; not reached: gone, twice/);
  });

  it("are those of MCP servers behind an address, with the headers that they want", async () => {
    const events = await ended(server.url, await start(server.url, calling("far.whoami")));
    expect(ofType(events, "tool.start")).toMatchObject([{ tool: "far.whoami", skill_id: "far@2.1.0" }]);
    expect(JSON.stringify(ofType(events, "tool.end"))).toContain("you are Bearer of-mcp");
  });

  it("fetch from private hosts that are named, and from no others", async () => {
    const [fetched] = await endsIn(await start(server.url, calling("web.fetch", { url: `${page.url}/` })));
    expect(JSON.stringify(fetched)).toContain("hello from inside");
    const [refused] = await endsIn(await start(server.url, calling("web.fetch", { url: server.url })));
    expect(refused).toMatchObject({ ok: false, error: { kind: "refused" } });
  });

  it("are dangerous where their server does not say otherwise, and then wait for a word", async () => {
    const run_id = await start(server.url, calling("test.pid"), { approvals: "destructive" });
    const [request] = await waitFor(server.url, run_id, "approval.requested");
    expect(request).toMatchObject({ tool: "test.pid", effect: "destructive" });
    await control(server.url, run_id, `approvals/${request?.approval_id}`, { decision: "once" });
    expect(await endsIn(run_id)).toMatchObject([{ ok: true }]);
  });
});

describe("a command", () => {
  const pidFile = join(folder, "pid");

  /** Begins a command that tells its process id, and does not end by itself. */
  async function begun(command: string): Promise<{ run_id: string; pid: number }> {
    rmSync(pidFile, { force: true });
    const run_id = await start(server.url, calling("shell", { command: `echo $$ > ${pidFile}; ${command}` }));
    await expect.poll(() => existsSync(pidFile) && readFileSync(pidFile, "utf8")).toMatch(/\n$/);
    return { run_id, pid: Number(readFileSync(pidFile, "utf8")) };
  }

  it.each([
    ["sleeps", "sleep 600"],
    ["will not be told", "trap '' TERM INT HUP; while :; do sleep 600; done"],
  ])("that %s is gone within a second of its run's end", async (_, command) => {
    const { run_id, pid } = await begun(command);
    expect((await control(server.url, run_id, "abort")).body.state).toBe("aborted");
    await expect.poll(() => isRunning(pid), { timeout: 1000 }).toBe(false);
    const events = await ended(server.url, run_id);
    expect(ofType(events, "tool.end")).toMatchObject([{ ok: false, error: { code: "KAI-RUN-TOOL-0001" } }]);
  });

  it("that its server was killed under is told to be interrupted, and is not run again", async () => {
    const effects = join(folder, "effects");
    const { run_id, pid } = await begun(`echo done >> ${effects}; sleep 600`);
    await expect.poll(() => existsSync(effects)).toBe(true);
    await waitFor(server.url, run_id, "process.started");
    await server.kill("SIGKILL");
    server = await serve();
    const events = await ended(server.url, run_id);
    expect(ofType(events, "tool.start")).toHaveLength(1);
    expect(ofType(events, "tool.end")).toMatchObject([{ ok: false, error: { code: "KAI-RUN-TOOL-0001" } }]);
    expect(lastState(events)).toMatchObject({ state: "done" });
    expect(readFileSync(effects, "utf8")).toBe("done\n");
    // Its process is told to be lost, which is all that anybody knows of it. [RW-GOVERN-4]
    const told = events.filter(({ type }) => type.startsWith("process.") || type === "tool.end");
    expect(told.map(({ type }) => type)).toEqual(["process.started", "process.terminated", "tool.end"]);
    expect(told[1]).toMatchObject({ payload: { reason: "lost" }, scope: told[0]?.scope });
    // A server that is killed cannot take its commands with it.
    process.kill(-pid, "SIGKILL");
  });

  it("waits for a hook, which looks again after its server was killed [RW-GOVERN-3]", async () => {
    const run_id = await start(server.url, calling("file.list"));
    const [began] = await waitFor(server.url, run_id, "hook.started", 2);
    expect(began).toMatchObject({ name: "input-check" });
    await server.kill("SIGKILL");
    server = await serve();
    writeFileSync(gate, "");
    const events = await ended(server.url, run_id);
    const told = events.filter(({ payload }) => (payload as Facts).name === "gate");
    const types = ["hook.started", "hook.failed", "hook.started", "hook.completed"];
    expect(told.map(({ type }) => type)).toEqual(types);
    expect(told[1]?.payload).toMatchObject({ reason: "lost" });
    expect(new Set(told.map(({ payload }) => (payload as Facts).hook_id)).size).toBe(1);
    expect(ofType(events, "tool.start")).toHaveLength(1);
    expect(ofType(events, "tool.end")).toMatchObject([{ ok: true }]);
    expect(lastState(events)).toMatchObject({ state: "done" });
  });

  it("ends with its server, as do MCP servers", async () => {
    const [told] = await endsIn(await start(server.url, calling("test.pid")));
    const pidText = /"text":"(\d+)"/.exec(JSON.stringify(told))?.[1];
    expect(isRunning(Number(pidText))).toBe(true);
    const { pid } = await begun("sleep 600");
    await server.kill("SIGTERM");
    expect([isRunning(Number(pidText)), isRunning(pid)]).toEqual([false, false]);
    server = await serve();
  });
});

const stuck: Tool = {
  name: "stuck",
  description: "ignores everything for a minute",
  effect: "read-only",
  input_schema: { type: "object" },
  run: () => new Promise((resolve) => setTimeout(() => resolve({}), 60_000).unref()),
};
/** Ends when it has to, with its work done. */
let finished = 0;
const finishing: Tool = {
  ...stuck,
  name: "finishing",
  effect: "destructive",
  run: (_, { signal }) =>
    new Promise((resolve) => {
      signal.addEventListener("abort", () => {
        finished += 1;
        resolve({ text: "finished" });
      });
    }),
};
const agent = engine({
  modelOf(name) {
    if (name === "nobody/nothing") throw new RunwireError("KAI-MODEL-NAME-0001", "nobody/nothing");
    return scriptedModel;
  },
  tools: [stuck, finishing],
  planningGate: "off",
});
const inside = underTest((settings: object) => startGateway(settings, undefined, agent));

describe("a tool that does not stop", () => {
  it("holds up neither the end of its run, nor another direction, nor the server", async () => {
    const aborted = await start(inside.url, calling("stuck"));
    await waitFor(inside.url, aborted, "tool.start");
    await control(inside.url, aborted, "abort");
    const events = await ended(inside.url, aborted);
    const msOf = (e: { ts: string } | undefined): number => Date.parse(e?.ts ?? "");
    const asked = events.find(({ type }) => type === "control.requested");
    expect(msOf(events.at(-1)) - msOf(asked)).toBeLessThan(1000);
    const turned = await start(inside.url, calling("stuck"));
    await waitFor(inside.url, turned, "tool.start");
    await control(inside.url, turned, "redirect", { instruction: script({ text: "turned" }) });
    expect(lastState(await ended(inside.url, turned))).toMatchObject({ state: "done" });
    const live = await start(inside.url, calling("stuck"));
    await waitFor(inside.url, live, "tool.start");
    const beganMs = performance.now();
    await inside.restart();
    expect(performance.now() - beganMs).toBeLessThan(10_000);
    await control(inside.url, live, "abort");
  });
});

describe("a tool that finishes while its server leaves", () => {
  it("is told to have done so, and is not run again", async () => {
    const run_id = await start(inside.url, calling("finishing"));
    await waitFor(inside.url, run_id, "tool.start");
    await inside.restart();
    const { results } = seenBy(await ended(inside.url, run_id));
    expect(results).toMatchObject([{ ok: true, output: { text: "finished" } }]);
    expect(finished).toBe(1);
  });
});

describe("a run that could not be", () => {
  it.each([
    [{ model: "nobody/nothing" }, 422, "KAI-MODEL-NAME-0001", "nobody"],
    [{ tools: ["stuck", "shel"] }, 422, "KAI-RUN-TOOL-0003", '"shel"; there is finishing, stuck'],
    [{ tools: ["file.*"] }, 422, "KAI-RUN-TOOL-0003", "file.*"],
    [{ tools: ["*x"] }, 422, "KAI-RUN-TOOL-0003", "*x"],
    [{ tools: "stuck" }, 422, "KAI-REQUEST-BODY-0002", "tools"],
    [{ approvals: "sometimes" }, 422, "KAI-REQUEST-BODY-0002", "approvals"],
  ])("is refused when it is asked for, and nothing is stored: %j", async (asked, status, code, named) => {
    const before = (await call(inside.url, "GET", "/v1/agent/runs")).text;
    const reply = await call(inside.url, "POST", "/v1/agent/runs", { prompt: "[]", ...asked });
    expect([reply.status, codeOf(reply), messageOf(reply)]).toEqual([
      status,
      code,
      expect.stringContaining(named),
    ]);
    expect((await call(inside.url, "GET", "/v1/agent/runs")).text).toBe(before);
  });

  it("is none of the agent's business where somebody else writes it", async () => {
    const asked = { prompt: "x", producer: "external", model: "nobody/nothing", tools: ["theirs"] };
    expect((await call(inside.url, "POST", "/v1/agent/runs", asked)).status).toBe(201);
  });

  it("may use every tool, some, or none", async () => {
    for (const tools of [["*"], ["stuck"], []])
      expect(lastState(await ended(inside.url, await start(inside.url, "[]", { tools })))).toMatchObject({
        state: "done",
      });
  });
});
