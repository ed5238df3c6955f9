// The built-in agent on a server that must not store everything: what runs is what the log shows, or nothing.

import { engine, type Tool } from "@runwire/engine";
import { is } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { beforeEach, describe, expect, it } from "vitest";
import { control } from "./calls.js";
import { calling, ended, ofType, scriptedModel, start, waitFor } from "./scripted.js";
import { underTest } from "./under-test.js";

/** What the tool was called with. */
const inputs: unknown[] = [];
const tool: Tool = {
  name: "users.create",
  description: "makes an account",
  effect: "destructive",
  input_schema: { type: "object" },
  async run(input) {
    inputs.push(input);
    return { text: "done" };
  },
};
const model = {
  ...scriptedModel,
  async *stream(...asked: Parameters<typeof scriptedModel.stream>) {
    for await (const part of scriptedModel.stream(...asked)) {
      if (part.kind === "call") {
        const { call_id, tool, input } = part;
        yield { kind: "args" as const, call_id, tool, text: JSON.stringify(input) };
      }
      yield part;
    }
  },
};
const agent = engine({ modelOf: () => model, tools: [tool], planningGate: "off" });
const server = underTest((settings: object) => startGateway(settings, undefined, agent), {
  redact: ["password"],
});
const inputless = underTest((settings: object) => startGateway(settings, undefined, agent), {
  redact: ["input"],
});
const secret = { name: "bob", account: { password: "hunter2" } };

beforeEach(() => {
  inputs.length = 0;
});

describe("the agent of a server that redacts", () => {
  it("runs no tool whose input is not what the model gave, and stores nothing of it [RW-REDACT-3]", async () => {
    const events = await ended(server.url, await start(server.url, calling(tool.name, secret)));
    expect(inputs).toEqual([]);
    expect(ofType(events, "tool.end")).toMatchObject([{ ok: false, error: { kind: "redacted" } }]);
    const written = events.filter((e) => !is(e, "turn.submitted"));
    expect(JSON.stringify(written)).not.toContain("hunter2");
  });

  it("stores nothing of an input that could not be read, and says that it could not [RW-REDACT-3]", async () => {
    const cut = '{"password":"hunter2","x":';
    const events = await ended(server.url, await start(server.url, calling(tool.name, cut)));
    expect(inputs).toEqual([]);
    const message = "The tool was not run: its input could not be read as a JSON object.";
    expect(ofType(events, "tool.end")).toMatchObject([
      { ok: false, error: { kind: "invalid-input", message } },
    ]);
    expect(JSON.stringify(events.filter((e) => !is(e, "turn.submitted")))).not.toContain("hunter2");
  });

  it("says of an input of which it keeps nothing that it is redacted [RW-REDACT-3]", async () => {
    const events = await ended(
      inputless.url,
      await start(inputless.url, calling(tool.name, { name: "bob" })),
    );
    expect(inputs).toEqual([]);
    expect(ofType(events, "tool.end")).toMatchObject([{ ok: false, error: { kind: "redacted" } }]);
  });

  it("runs no tool whose input is not what somebody made of it [RW-REDACT-3]", async () => {
    const run_id = await start(server.url, calling(tool.name, { name: "bob" }), { approvals: "always" });
    const [request] = await waitFor(server.url, run_id, "approval.requested");
    const answer = { decision: "once", input: secret };
    expect((await control(server.url, run_id, `approvals/${request?.approval_id}`, answer)).status).toBe(200);
    const events = await ended(server.url, run_id);
    expect(inputs).toEqual([]);
    expect(ofType(events, "tool.end")).toMatchObject([{ ok: false, error: { kind: "denied" } }]);
  });

  it("runs the others", async () => {
    await ended(server.url, await start(server.url, calling(tool.name, { name: "bob" })));
    expect(inputs).toEqual([{ name: "bob" }]);
  });
});
