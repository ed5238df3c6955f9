// `runwire serve` on a provider, killed in the middle of an answer: what was said stays said, and the answer goes on.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type RuntimeMessage, runtimeReader, validateRuntime } from "@runwire/protocol";
import { afterAll, beforeAll, expect, test } from "vitest";
import { answering, asideTitle } from "./testing/asides.js";
import { type FakeProvider, fakeProvider } from "./testing/fake-provider.js";
import { endedRun, joined, payloadsOf, readRun, startRun } from "./testing/served.js";
import { type FakeAnswer, plainAnswer } from "./testing/wires/answer.js";
import { chatWire } from "./testing/wires/chat.js";

const runwire = fileURLToPath(new URL("../../cli/bin/runwire.js", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "runwire-killed-"));
let fake: FakeProvider;
let server: { readonly url: string; readonly process: ChildProcess };

beforeAll(async () => {
  fake = await fakeProvider();
  server = await serve();
});
afterAll(async () => {
  await kill("SIGTERM");
  await fake.close();
  rmSync(folder, { recursive: true });
});

async function serve(): Promise<typeof server> {
  const others = Object.entries(process.env).filter(([name]) => !/^RUNWIRE_|_API_KEY$|_BASE_URL$/.test(name));
  const env = {
    ...Object.fromEntries(others),
    RUNWIRE_OPENAI_BASE_URL: fake.url,
    RUNWIRE_MODEL: "local/llama",
  };
  const child = spawn(process.execPath, [runwire, "serve", "--port", "0", "--data", folder], {
    stdio: ["ignore", "pipe", "inherit"],
    env,
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /^runwire listening on (http:\/\/[^\s,]+)/.exec(line)?.[1];
    if (url !== undefined) return { url, process: child };
  }
  throw new Error("the server has ended");
}

async function kill(signal: NodeJS.Signals): Promise<void> {
  const ended = once(server.process, "exit");
  server.process.kill(signal);
  await ended;
}

const said: FakeAnswer = { ...plainAnswer, text: "Hello, 世界! That is all I have to say today." };

test("an answer that its server was killed in goes on from what was said, in another attempt [RW-COURSE-1]", async () => {
  const text = chatWire.encode(said, "llama");
  const silentAfterBytes = Buffer.byteLength(text.slice(0, text.indexOf("have")));
  fake.script(() => ({ kind: "answer", answer: said, silentAfterBytes }));
  const run_id = await startRun(server.url, {});
  await readRun(server.url, run_id, ({ type }) => type === "text.delta");
  await kill("SIGKILL");
  fake.script(
    answering(({ partial }) => ({
      kind: "answer",
      answer: { ...said, text: said.text.slice(partial.length) },
    })),
  );
  server = await serve();
  const events = await endedRun(server.url, run_id);
  const [, again] = events.flatMap(({ type }, i) => (type === "model.requested" ? [i] : []));
  const before = joined(events.slice(0, again), "text.delta");
  expect(before).not.toBe("");
  expect(fake.requests[0]?.partial).toBe(before);
  expect(joined(events, "text.delta")).toBe(said.text);
  expect(payloadsOf(events, "message.settled")).toMatchObject([{ text: said.text }]);
  // The provider was asked twice, and each time counts.
  const answers = events.findIndex(({ type }) => type === "message.settled");
  expect(payloadsOf(events.slice(0, answers), "usage")).toMatchObject([{ requests: 1 }, { requests: 1 }]);
  expect(events.at(-1)?.payload).toMatchObject({ state: "done" });

  const messages = await runtimeOf(run_id);
  const course = messages.filter(({ type }) => /^(task|turn)\./.test(type));
  expect(course.map(({ type, runId }) => [type, runId])).toEqual([
    ["turn.submitted", run_id],
    ["turn.started", run_id],
    ["task.created", run_id],
    ["task.started", run_id],
    ["task.attempt.started", run_id],
    ["task.profile.resolved", run_id],
    ["task.attempt.failed", run_id],
    ["task.retrying", run_id],
    ["task.attempt.started", `${run_id}:2`],
    ["task.attempt.completed", `${run_id}:2`],
    ["task.completed", run_id],
    ["turn.completed", run_id],
  ]);
  const reader = runtimeReader();
  for (const message of messages) {
    reader.read(message);
    expect(validateRuntime(message, { profile: "strict" })).toEqual([]);
  }
  expect(Object.values(reader.model.tasks)).toMatchObject([
    {
      status: "completed",
      attempts: { [run_id]: { status: "failed" }, [`${run_id}:2`]: { status: "completed" } },
    },
  ]);
});

async function runtimeOf(run_id: string): Promise<readonly RuntimeMessage[]> {
  const path = `/v1/agent/runs/${run_id}/stream?dialect=runtime-strict`;
  const response = await fetch(server.url + path, { headers: { Accept: "application/x-ndjson" } });
  const lines = (await response.text()).trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line) as RuntimeMessage);
}

test("killed between its message and its end, a run has each of what follows once", async () => {
  fake.script(
    answering(
      () => ({ kind: "answer", answer: said }),
      (kind) =>
        kind === "title"
          ? { kind: "answer", answer: { ...plainAnswer, text: "Too early" } }
          : { kind: "silence" },
    ),
  );
  const run_id = await startRun(server.url, {});
  await readRun(server.url, run_id, ({ type }) => type === "message.settled");
  await kill("SIGKILL");
  fake.script(answering(() => ({ kind: "answer", answer: said })));
  server = await serve();
  const events = await endedRun(server.url, run_id);
  const types = events.map(({ type }) => type);
  expect(types.slice(types.indexOf("message.settled"))).toEqual([
    "message.settled",
    "task.attempt.failed",
    "task.retrying",
    "task.attempt.started",
    "title",
    "suggestions",
    "usage",
    "usage",
    "evidence.changed",
    "run.lifecycle",
  ]);
  expect(payloadsOf(events, "title")).toEqual([{ title: asideTitle }]);
});
