// What the agent tells of its own governance: who let a tool run, what it was held to, what hooks said, which commands
// ran and which files have changed. Facts in the log, and said by the runtime dialect as they are.

import { builtInTools, clarifyTool, engine, type Tool } from "@runwire/engine";
import { type Event, type Facts, strictSchemaVersion, validateRuntime } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import { control } from "./calls.js";
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

const own = builtInTools({ shell: {}, web: { resolve: async () => ["10.0.0.7"] } });
const agent = engine({
  modelOf: () => scriptedModel,
  tools: [...own, clarifyTool, sayTool],
  planningGate: "off",
});
const server = underTest((settings: Parameters<typeof startGateway>[0], clock) =>
  startGateway(settings, clock, agent),
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
