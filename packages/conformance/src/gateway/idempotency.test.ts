// A creation that is asked for again, because its answer was lost, is answered and not repeated.

import { RunwireError } from "@runwire/protocol";
import { createKey, startGateway } from "@runwire/server";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { type Key, newKey, newRun } from "./access.js";
import { type Answer, ask, type Headers } from "./asking.js";
import { call, codeOf, type Reply, runPath } from "./calls.js";
import { muteAgent } from "./mute-agent.js";
import { underTest } from "./under-test.js";

const server = underTest(startGateway, { auth: "keys" });
const models = new Set(["theirs"]);
const agent = muteAgent({
  async check({ model }) {
    if (!models.has(String(model))) throw new RunwireError("KAI-MODEL-KEY-0001");
  },
});
const agents = underTest((settings: object) => startGateway(settings, undefined, agent));
let alice: Key;
let bob: Key;

beforeAll(async () => {
  [alice, bob] = (await Promise.all([
    newKey(createKey, server, "alice"),
    newKey(createKey, server, "bob"),
  ])) as [Key, Key];
});

let keys = 0;
const freshKey = (): string => {
  keys += 1;
  // The full stop parts the number from whatever a test adds: no key is another's beginning with a digit more.
  return `key-${keys}.`;
};

const asked = { prompt: "go", producer: "external", lease_ms: 600_000, metadata: { a: 1, b: [2] } };

const post = (path: string, key: string, body: unknown, headers: Headers = alice.headers): Promise<Answer> =>
  ask(server.url, { method: "POST", path, headers: { ...headers, "Idempotency-Key": key }, body });

const create = (key: string, body: unknown = asked, headers?: Headers): Promise<Answer> =>
  post("/v1/agent/runs", key, body, headers);

async function runCount(headers: Headers = alice.headers): Promise<number> {
  let count = 0;
  for (let cursor = ""; ; ) {
    const { body } = await ask(server.url, { path: `/v1/agent/runs?limit=200${cursor}`, headers });
    count += (body.runs as readonly unknown[]).length;
    if (body.next === null) return count;
    cursor = `&cursor=${body.next}`;
  }
}

function expectSame(again: Answer, first: Answer): void {
  expect([again.status, again.text]).toEqual([first.status, first.text]);
  expect(again.headers.location).toBe(first.headers.location);
  expect(first.headers["idempotency-replayed"]).toBe(undefined);
  expect(again.headers["idempotency-replayed"]).toBe("true");
}

describe("a run that is created under a key", () => {
  it("is created once, whatever the key and however often it is asked for [RW-IDEM-1]", async () => {
    const visible = Array.from({ length: 94 }, (_, i) => String.fromCharCode(0x21 + i));
    const suffix = fc.string({ unit: fc.constantFrom(...visible), maxLength: 200 });
    await fc.assert(
      fc.asyncProperty(suffix, fc.integer({ min: 1, max: 3 }), async (words, times) => {
        const key = `${freshKey()}${words}`;
        const before = await runCount();
        const first = await create(key);
        expect(first.status).toBe(201);
        for (let i = 0; i < times; i++) expectSame(await create(key), first);
        expect(await runCount()).toBe(before + 1);
      }),
      { numRuns: 20 },
    );
  });

  it("is the same request however its JSON is written [RW-IDEM-1]", async () => {
    const key = freshKey();
    const first = await create(key);
    const { metadata, ...rest } = asked;
    expectSame(await create(key, { metadata, ...rest }), first);
    expectSame(await create(key, JSON.stringify(asked, null, 4)), first);
    const { a, b } = metadata;
    expectSame(await create(key, { ...rest, metadata: { b, a } }), first);
    const said = { ...asked, prompt: undefined };
    const deep = freshKey();
    const one = await create(deep, { ...said, messages: [{ role: "user", content: { x: { p: 1, q: 2 } } }] });
    const other = { ...said, messages: [{ content: { x: { q: 2, p: 1 } }, role: "user" }] };
    expectSame(await create(deep, other), one);
  });

  it("is refused under the key of another request, and nothing is made [RW-IDEM-2]", async () => {
    const key = freshKey();
    const first = await create(key);
    const before = await runCount();
    for (const other of [
      { ...asked, prompt: "stop" },
      { ...asked, agent: "a" },
      { ...asked, metadata: { a: 1, b: [3] } },
    ]) {
      const { status, code } = await create(key, other);
      expect([status, code]).toEqual([422, "KAI-REQUEST-KEY-0001"]);
    }
    const child = await post(runPath(first.body.run_id as string, "children"), key, { prompt: "go" });
    expect([child.status, child.code]).toEqual([422, "KAI-REQUEST-KEY-0001"]);
    expect(await runCount()).toBe(before);
    expectSame(await create(key), first);
  });

  it("that was refused for another reason leaves its key free [RW-IDEM-2]", async () => {
    const key = freshKey();
    expect((await create(key, { ...asked, lease_ms: 1 })).status).toBe(422);
    expect((await create(key)).status).toBe(201);
  });

  it("is each tenant's own: neither hears of the other's key [RW-IDEM-3]", async () => {
    const key = freshKey();
    const [first, other] = [await create(key), await create(key, { ...asked, prompt: "b" }, bob.headers)];
    expect([first.status, other.status]).toEqual([201, 201]);
    expect(other.body.run_id).not.toBe(first.body.run_id);
    expect(other.headers["idempotency-replayed"]).toBe(undefined);
    expectSame(await create(key), first);
  });

  it("is created once by fifty that ask at the same time [RW-IDEM-1]", async () => {
    const key = freshKey();
    const before = await runCount();
    const answers = await Promise.all(Array.from({ length: 50 }, () => create(key)));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(answers.filter(({ headers }) => headers["idempotency-replayed"] === undefined)).toHaveLength(1);
    expect(await runCount()).toBe(before + 1);
  });

  it("is known to the next server, too [RW-IDEM-1]", async () => {
    const [key, childKey] = [freshKey(), freshKey()];
    const first = await create(key);
    const path = runPath(first.body.run_id as string, "children");
    const child = await post(path, childKey, { prompt: "dig" });
    await server.restart();
    expectSame(await create(key), first);
    expectSame(await post(path, childKey, { prompt: "dig" }), child);
    expect((await create(key, { ...asked, prompt: "other" })).status).toBe(422);
  });

  it("is told as it was created, whatever has become of it [RW-IDEM-1]", async () => {
    const key = freshKey();
    const first = await create(key);
    const path = runPath(first.body.run_id as string, "abort");
    await ask(server.url, { method: "POST", path, headers: alice.headers, body: {} });
    expectSame(await create(key), first);
  });
});

describe("a run of the agent that is created under a key", () => {
  it("is told of also by a server that could not begin it [RW-IDEM-1]", async () => {
    const body = { prompt: "go", model: "theirs" };
    const key = { "Idempotency-Key": freshKey() };
    const ask = (headers: Readonly<Record<string, string>> = key, what = body): Promise<Reply> =>
      call(agents.url, "POST", "/v1/agent/runs", what, headers);
    const first = await ask();
    expect(first.status).toBe(201);
    models.delete("theirs");
    const again = await ask();
    expect([again.status, again.text]).toEqual([201, first.text]);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(codeOf(await ask({}))).toBe("KAI-MODEL-KEY-0001");
    expect(codeOf(await ask(key, { ...body, prompt: "stay" }))).toBe("KAI-REQUEST-KEY-0001");
  });
});

describe("a child that is spawned under a key", () => {
  it("is spawned once, under its own parent [RW-IDEM-1] [RW-IDEM-2]", async () => {
    const [run_id, other] = [
      await newRun(server.url, alice.headers),
      await newRun(server.url, alice.headers),
    ];
    const key = freshKey();
    const spawn = (id: string, prompt: string): Promise<Answer> =>
      post(runPath(id, "children"), key, { prompt });
    const answers = await Promise.all(Array.from({ length: 20 }, () => spawn(run_id, "dig")));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(answers[0]?.status).toBe(201);
    for (const wrong of [await spawn(run_id, "sleep"), await spawn(other, "dig")])
      expect([wrong.status, wrong.code]).toEqual([422, "KAI-REQUEST-KEY-0001"]);
    const { body } = await ask(server.url, { path: runPath(run_id, "children"), headers: alice.headers });
    expect(body.children).toMatchObject([{ run_id: answers[0]?.body.run_id }]);
  });
});

describe("a key", () => {
  it("is 1 to 255 visible characters, given once [RW-IDEM-3]", async () => {
    const before = await runCount();
    for (const key of ["", "two words", "é", "x".repeat(256), ["one", "two"]]) {
      const headers = { ...alice.headers, "Idempotency-Key": key };
      const { status, code } = await ask(server.url, {
        method: "POST",
        path: "/v1/agent/runs",
        headers,
        body: asked,
      });
      expect([key, status, code]).toEqual([key, 400, "KAI-STREAM-PARAM-0001"]);
    }
    expect(await runCount()).toBe(before);
    expect((await create("x".repeat(255))).status).toBe(201);
  });
});
