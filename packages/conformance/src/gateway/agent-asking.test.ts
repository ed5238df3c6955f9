// A run of the agent says what it is about, or is not begun.

import { engine } from "@runwire/engine";
import type { Facts } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { expect, it } from "vitest";
import { call, codeOf, type Reply } from "./calls.js";
import { ended, scriptedModel } from "./scripted.js";
import { forwardClock, underTest } from "./under-test.js";

const clock = forwardClock();
const agent = engine({ modelOf: () => scriptedModel, tools: [], planningGate: "off" });
const server = underTest((settings: object) => startGateway(settings, clock, agent), {}, clock);
const create = (body: unknown): Promise<Reply> => call(server.url, "POST", "/v1/agent/runs", body as Facts);

const user = { role: "user", content: "[]" };
const called = { role: "assistant", content: "", calls: [{ call_id: "call_1", tool: "t", input: {} }] };
const result = { role: "tool", call_id: "call_1", tool: "t", ok: true, output: 1 };

it.each<readonly [string, Facts, string]>([
  ["nothing", {}, "needs a `prompt`"],
  ["an empty prompt", { prompt: "" }, "needs a `prompt`"],
  ["a blank prompt", { prompt: " \n\t " }, "needs a `prompt`"],
  ["a turn without a prompt", { session_id: "sess_mute" }, "needs a `prompt`"],
  ["no messages", { messages: [] }, "`messages`"],
  ["a message without a role", { messages: [{ x: 1 }] }, "`messages.0.role`"],
  ["a role that nobody has", { messages: [user, { role: "frob", content: "x" }] }, "`messages.1.role`"],
  ["a message without content", { messages: [{ role: "user" }] }, "`messages.0.content`"],
  ["a blank message", { messages: [{ role: "user", content: " " }] }, "`messages.0.content`"],
  ["a last word that asks nothing", { messages: [user, { role: "assistant", content: "x" }] }, "the last"],
  ["a result of no call", { messages: [user, result] }, "`messages.1.call_id`"],
  ["a blank model", { prompt: "[]", model: " " }, "`model`"],
])("the agent is asked %s: that is refused, and says what to send", async (_, body, says) => {
  const reply = await create(body);
  expect([reply.status, codeOf(reply)]).toEqual([422, "KAI-REQUEST-BODY-0002"]);
  expect(reply.text).toContain(says);
  expect((await call(server.url, "GET", "/v1/agent/runs")).body.runs).toEqual([]);
});

it("what asks something is begun, and external producers may ask nothing at all", async () => {
  const bodies: readonly Facts[] = [
    { prompt: "[]" },
    { messages: [{ role: "system", content: "be brief" }, user] },
    { messages: [user, called, result] },
    { messages: [{ role: "user", content: [{ type: "text", text: "[]" }] }] },
    { producer: "external" },
    { producer: "external", prompt: "", model: "" },
    { producer: "external", messages: [{ x: 1 }] },
  ];
  for (const body of bodies) {
    const reply = await create(body);
    expect([body, reply.status]).toEqual([body, 201]);
    if (body.producer === undefined) await ended(server.url, String(reply.body.run_id));
  }
});

it("a run says from its beginning what it was asked and with which model", async () => {
  const prompt = `${"x".repeat(99)}👩 and so on`;
  const { body } = await create({ producer: "external", prompt, model: "theirs" });
  const shown = { title: null, prompt_preview: "x".repeat(99), model: "theirs" };
  expect((await call(server.url, "GET", `/v1/agent/runs/${body.run_id}`)).body).toMatchObject(shown);
  const { runs } = (await call(server.url, "GET", "/v1/agent/runs")).body as { runs: readonly Facts[] };
  expect(runs[0]).toMatchObject(shown);
  const silent = (await create({ producer: "external" })).body.run_id;
  expect((await call(server.url, "GET", `/v1/agent/runs/${silent}`)).body).toMatchObject({
    prompt_preview: null,
    model: null,
  });
});
