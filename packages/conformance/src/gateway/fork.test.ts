// Forks: another run from any point of one, with the same conversation, and nothing of the old one changed.

import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Draft, type Event, type Facts, is } from "@runwire/protocol";
import { createKey, startGateway } from "@runwire/server";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  allEvents,
  append,
  call,
  codeOf,
  control,
  createRun,
  getRun,
  lifecycle,
  type Reply,
  runPath,
  say,
  text,
} from "./calls.js";
import { underTest } from "./under-test.js";

const server = underTest(startGateway);

const fork = (run_id: string, body: Facts = {}, dialect = "runwire"): Promise<Reply> =>
  control(server.url, run_id, `fork?dialect=${dialect}`, body);

async function askedIn(run_id: string): Promise<Facts> {
  const events = await allEvents(server.url, run_id);
  return events.find(({ type }) => type === "turn.submitted")?.payload ?? {};
}

/** What a fork at that point begins with. */
async function messagesAt(run_id: string, body: Facts = {}, dialect?: string): Promise<readonly Facts[]> {
  const { status, body: forked, text: said } = await fork(run_id, body, dialect);
  expect([status, said]).toEqual([201, said]);
  return (await askedIn(forked.run_id as string)).messages as readonly Facts[];
}

/** Every byte of a run that anyone can read. */
async function bytesOf(run_id: string): Promise<readonly string[]> {
  const texts: string[] = [];
  for (const dialect of ["koder", "runwire"]) {
    for (const detail of ["default", "full"]) {
      const path = runPath(run_id, `replay.jsonl?dialect=${dialect}&detail=${detail}`);
      texts.push((await call(server.url, "GET", path)).text);
    }
  }
  return [...texts, (await call(server.url, "GET", `/v1/agent/runs/${run_id}`)).text];
}

const story: readonly Draft[] = [
  text("Let me "),
  text("look. "),
  say("tool.call", { call_id: "call_1", tool: "search", input: { q: "x" } }),
  say("tool.call", { call_id: "call_2", tool: "search", input: { q: "y" } }),
  say("tool.start", { call_id: "call_1", tool: "search", input: { q: "x!" } }),
  say("tool.end", { call_id: "call_1", ok: true, output: { text: "ex" } }),
  say("tool.start", { call_id: "call_2", tool: "search", input: { q: "y" } }),
  say("tool.end", { call_id: "call_2", ok: false, error: { code: "KAI-X", message: "no" } }),
  say("step.boundary", { step_index: 0, step_kind: "tool-roundtrip", checkpoint_id: "ckpt_1" }),
  say("steer.delivered", { text: "be short" }),
  text("It is ex."),
  say("message.settled", { text: "It is ex." }),
  lifecycle("done"),
];

const asked = { role: "user", content: "what is x?" };
const calls = [
  { call_id: "call_1", tool: "search", input: { q: "x!" } },
  { call_id: "call_2", tool: "search", input: { q: "y" } },
];
const roundtrip = [
  asked,
  { role: "assistant", content: "Let me look. ", calls },
  { role: "tool", call_id: "call_1", tool: "search", ok: true, output: { text: "ex" } },
  { role: "tool", call_id: "call_2", tool: "search", ok: false, output: { code: "KAI-X", message: "no" } },
];
const steered = [...roundtrip, { role: "user", content: "be short" }];
const whole = [...steered, { role: "assistant", content: "It is ex.", calls: [] }];

async function told(): Promise<string> {
  const run_id = await createRun(server.url, {
    prompt: "what is x?",
    metadata: { team: "red" },
    agent: "helper",
  });
  await append(server.url, run_id, ...story);
  return run_id;
}

describe("a fork", () => {
  it("begins with the conversation up to its point, tool calls and results among it [RW-FORK-1]", async () => {
    const run_id = await told();
    expect(await messagesAt(run_id)).toEqual(whole);
    const prompt = "and y?";
    expect(await messagesAt(run_id, { prompt })).toEqual([...whole, { role: "user", content: prompt }]);
    expect(await messagesAt(run_id, { checkpoint_id: "ckpt_1" })).toEqual(roundtrip);
    const events = await allEvents(server.url, run_id, { detail: "default" });
    const posOf = (type: string): number => events.find((e) => e.type === type)?.pos ?? 0;
    expect(await messagesAt(run_id, { at: 1 })).toEqual([asked]);
    expect(await messagesAt(run_id, { at: posOf("steer.delivered") })).toEqual(steered);
    // In the middle of its calls: what has no result is told as interrupted.
    const interrupted = { ok: false, output: { code: "KAI-RUN-TOOL-0001", message: "interrupted" } };
    expect(await messagesAt(run_id, { at: posOf("tool.end") })).toEqual([
      ...roundtrip.slice(0, 3),
      { role: "tool", call_id: "call_2", tool: "search", ...interrupted },
    ]);
    // The same points by `seq`.
    const seqOf = (type: string): number => events.find((e) => e.type === type)?.seq ?? 0;
    expect(await messagesAt(run_id, { at: seqOf("step.boundary") }, "koder")).toEqual(roundtrip);
  });

  it("says where it comes from, is a run like any other, and takes after the old one [RW-FORK-2]", async () => {
    const run_id = await told();
    const { body } = await fork(run_id, { checkpoint_id: "ckpt_1", prompt: "go on" });
    const events = await allEvents(server.url, run_id, { detail: "default" });
    const step = events.find((e) => is(e, "step.boundary")) as Event;
    const forked_from = { run_id, pos: step.pos, seq: step.seq, checkpoint_id: "ckpt_1" };
    expect(body).toMatchObject({ forked_from, workspace: "fresh", state: "running" });
    const forked = body.run_id as string;
    const summary = await getRun(server.url, forked);
    const old = await getRun(server.url, run_id);
    expect(summary).toMatchObject({
      forked_from,
      metadata: { team: "red" },
      agent: "helper",
      parent_id: null,
    });
    expect(summary.session_id).not.toBe(old.session_id);
    expect(old.forked_from).toBeNull();
    expect(await askedIn(forked)).toMatchObject({ forked_from, agent: "helper" });
    // Someone outside writes it, as the old one; its children are no forks, and it can be forked itself.
    const child = (await control(server.url, forked, "children", { prompt: "help" })).body.run_id as string;
    expect((await getRun(server.url, child)).forked_from).toBeNull();
    await append(server.url, forked, text("more"), lifecycle("done"));
    const again = await messagesAt(forked, { prompt: "once more" });
    expect(again.slice(0, roundtrip.length)).toEqual(roundtrip);
    expect(again.slice(roundtrip.length)).toEqual([
      { role: "user", content: "go on" },
      { role: "assistant", content: "more", calls: [] },
      { role: "user", content: "once more" },
    ]);
  });

  it("tells of what lies beside the log where it is, and how it begins [RW-FORK-1]", async () => {
    const run_id = await createRun(server.url, { prompt: "what is x?" });
    const long = "é".repeat(50_000);
    await append(
      server.url,
      run_id,
      say("tool.call", { call_id: "call_1", tool: "write", input: { path: "a", content: long } }),
      say("tool.start", { call_id: "call_1", tool: "write", input: { path: "a", content: long } }),
      say("tool.end", { call_id: "call_1", ok: true, output: long }),
    );
    const [, called, gave] = await messagesAt(run_id);
    const elsewhere = { blob_ref: expect.stringMatching(/^blob_/), bytes: expect.any(Number) };
    const input = { ...elsewhere, preview: expect.stringMatching(/^{"path":"a","content":"éé/) };
    expect(called).toMatchObject({ role: "assistant", calls: [{ call_id: "call_1", input }] });
    const output = { ...elsewhere, preview: expect.stringMatching(/^éé/) };
    expect(gave).toMatchObject({ role: "tool", call_id: "call_1", ok: true, output });
  });

  it("has what people said in full, also what lies beside the log [RW-FORK-1]", async () => {
    const run_id = await createRun(server.url, { prompt: "what is x?" });
    const long = `${"é".repeat(50_000)}!`;
    // Half a character, which only JSON can say.
    const odd = `${"x".repeat(70_000)}\uD83D`;
    const spilled = { text: { blob_ref: `blob_${"0".repeat(64)}`, bytes: 5, preview: "short" } };
    await append(server.url, run_id, say("steer.delivered", { text: long }));
    await control(server.url, run_id, "redirect", { instruction: odd });
    await append(
      server.url,
      run_id,
      lifecycle("running"),
      say("steer.delivered", { text: "short", spilled }),
    );
    expect(await messagesAt(run_id)).toEqual([
      asked,
      { role: "user", content: long },
      { role: "user", content: odd },
      // A producer's own word refers to nothing.
      { role: "user", content: "short", spilled: { content: spilled.text } },
    ]);
  });

  it("has as a text what people said, also where the same bytes were a tool's JSON [RW-FORK-1]", async () => {
    const run_id = await createRun(server.url, { prompt: "what is x?" });
    const output = { rows: Array.from({ length: 20_000 }, (_, i) => i) };
    const quoted = JSON.stringify(output);
    const long = "y".repeat(70_000);
    const blob_ref = `blob_${createHash("sha256").update(long).digest("hex")}`;
    // A producer's own word, of bytes that are no JSON.
    const where = { blob_ref, bytes: long.length, media_type: "application/json", preview: "short" };
    await append(
      server.url,
      run_id,
      say("tool.start", { call_id: "call_1", tool: "rows" }),
      say("tool.end", { call_id: "call_1", ok: true, output }),
      say("steer.delivered", { text: quoted }),
      say("steer.delivered", { text: long }),
      say("steer.delivered", { text: "short", spilled: { text: where } }),
    );
    expect((await messagesAt(run_id)).slice(-3)).toEqual([
      { role: "user", content: quoted },
      { role: "user", content: long },
      { role: "user", content: "short", spilled: { content: where } },
    ]);
  });

  it("is refused where what people said does not fit into an event [RW-FORK-1]", async () => {
    const run_id = await createRun(server.url);
    for (const letter of ["a", "b", "c"])
      await append(server.url, run_id, say("steer.delivered", { text: letter.repeat(3_000_000) }));
    const refused = await fork(run_id);
    expect([refused.status, codeOf(refused)]).toEqual([413, "KAI-REQUEST-SIZE-0001"]);
  });

  it("of a child has no more than the child had of its ancestors [RW-FORK-2]", async () => {
    const given = { model: "demo", fallback_models: ["demo"], budget_usd: 2 };
    const tools = ["file.*", "web.fetch"];
    const root = await createRun(server.url, { ...given, tools, approvals: "always" });
    const spawn = async (parent: string, asked: Facts): Promise<string> =>
      (await control(server.url, parent, "children", { prompt: "help", ...asked })).body.run_id as string;
    const child = await spawn(root, { tools_allowed: ["file.read", "file.write", "shell"] });
    const grandchild = await spawn(child, { tools_allowed: ["*"] });
    const { body } = await fork(grandchild);
    expect(await askedIn(body.run_id as string)).toMatchObject({
      ...given,
      tools: ["file.read", "file.write"],
      approvals: "always",
    });
    // One without such ancestors is as it was.
    const plain = await createRun(server.url, { tools });
    const asked = await askedIn((await fork(plain)).body.run_id as string);
    expect(asked).toMatchObject({ tools });
    expect(Object.keys(asked)).not.toContain("approvals");
  });

  it("leaves the old run as it is, byte for byte, wherever it is made [RW-FORK-3]", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.oneof(
            fc.string({ minLength: 1 }).map((words) => text(words)),
            fc.nat(3).map((i) => say("tool.start", { call_id: `call_${i}`, tool: "t", input: { i } })),
            fc.nat(3).map((i) => say("tool.end", { call_id: `call_${i}`, ok: i % 2 === 0, output: i })),
            fc.string().map((words) => say("steer.delivered", { text: words })),
            fc.string().map((words) => say("message.settled", { text: words })),
            fc.constant(say("model.completed", {})),
          ),
          { maxLength: 20 },
        ),
        fc.boolean(),
        async (drafts, ends) => {
          const run_id = await createRun(server.url);
          await append(
            server.url,
            run_id,
            ...drafts,
            say("custom", {}),
            ...(ends ? [lifecycle("done")] : []),
          );
          const before = await bytesOf(run_id);
          const events = await allEvents(server.url, run_id, { detail: "default" });
          for (let at = 1; at <= events.length; at += 3) {
            const messages = await messagesAt(run_id, { at });
            const past = events.slice(0, Math.max(at, 2));
            // Nothing that the model said is lost, doubled or moved.
            const said = past.flatMap((e) => (is(e, "text.delta") ? [e.payload.text] : [])).join("");
            const kept = messages
              .flatMap(({ role, content }) => (role === "assistant" ? [content] : []))
              .join("");
            if (!past.some((e) => is(e, "message.settled"))) expect(kept).toBe(said);
            // Each call is followed by its one result.
            const called = messages.flatMap(({ calls: made }) =>
              ((made ?? []) as { call_id: string }[]).map(({ call_id }) => call_id),
            );
            const results = messages.flatMap(({ role, call_id }) => (role === "tool" ? [call_id] : []));
            expect(results).toEqual(called);
          }
          expect(await bytesOf(run_id)).toEqual(before);
        },
      ),
      { numRuns: 15 },
    );
  });

  it("is made once under a key, and is told of again as it was [RW-FORK-2]", async () => {
    const run_id = await createRun(server.url);
    const once = (body: Facts) =>
      call(server.url, "POST", runPath(run_id, "fork"), body, { "Idempotency-Key": "fork-1" });
    const first = await once({ prompt: "go" });
    await append(server.url, run_id, text("later"), say("custom", {}));
    const again = await once({ prompt: "go" });
    expect(again.body).toEqual(first.body);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(codeOf(await once({ prompt: "stay" }))).toBe("KAI-REQUEST-KEY-0001");
    await call(server.url, "DELETE", `/v1/agent/runs/${run_id}`);
    expect((await once({ prompt: "go" })).body).toEqual(first.body);
  });

  it("of a point that is not there is refused, and so is one of another tenant's run [RW-FORK-4]", async () => {
    const run_id = await told();
    const points: readonly [Facts, string][] = [
      [{ at: 9999 }, "KAI-RUN-POINT-0001"],
      [{ checkpoint_id: "ckpt_none" }, "KAI-RUN-POINT-0001"],
      [{ at: 0 }, "KAI-REQUEST-BODY-0002"],
      [{ at: 1, checkpoint_id: "ckpt_1" }, "KAI-REQUEST-BODY-0002"],
    ];
    for (const [body, code] of points) {
      const refused = await fork(run_id, body);
      expect([body, refused.status, codeOf(refused)]).toEqual([body, 422, code]);
    }
    expect((await fork("run_none")).status).toBe(404);
    const dataFolder = mkdtempSync(join(tmpdir(), "runwire-fork-keys-"));
    const headers = ["acme", "rival"].map((tenant) => {
      const wish = { tenant, scopes: ["read", "write"] as const, name: "", lifeMs: undefined };
      return { Authorization: `Bearer ${createKey(join(dataFolder, "keys.json"), wish, Date.now()).key}` };
    });
    const locked = await startGateway({ port: 0, dataFolder, durability: "os", auth: "keys" });
    const made = await call(locked.url, "POST", "/v1/agent/runs", { producer: "external" }, headers[0]);
    const path = runPath(made.body.run_id as string, "fork");
    expect((await call(locked.url, "POST", path, {}, headers[1])).status).toBe(404);
    expect((await call(locked.url, "POST", path, {}, headers[0])).status).toBe(201);
    await locked.close();
    rmSync(dataFolder, { recursive: true });
  });
});

describe("a rewind", () => {
  it("needs what ending a run needs and what beginning one needs [RW-CKPT-4]", async () => {
    const dataFolder = mkdtempSync(join(tmpdir(), "runwire-rewind-keys-"));
    const keyed = (...scopes: readonly ("write" | "control")[]) => {
      const wish = { tenant: "acme", scopes, name: "", lifeMs: undefined };
      return { Authorization: `Bearer ${createKey(join(dataFolder, "keys.json"), wish, Date.now()).key}` };
    };
    const [write, controls, both] = [keyed("write"), keyed("control"), keyed("write", "control")];
    const locked = await startGateway({ port: 0, dataFolder, durability: "os", auth: "keys" });
    const made = await call(locked.url, "POST", "/v1/agent/runs", { producer: "external" }, both);
    const path = runPath(made.body.run_id as string, "rewind");
    const rewind = (headers: typeof both) =>
      call(locked.url, "POST", path, { checkpoint_id: "ckpt_1" }, headers);
    expect((await rewind(write)).status).toBe(403);
    expect((await rewind(controls)).status).toBe(403);
    expect(codeOf(await rewind(both))).toBe("KAI-RUN-POINT-0001");
    await locked.close();
    rmSync(dataFolder, { recursive: true });
  });

  it("of a run that someone outside writes has no workspace to go back to [RW-CKPT-3] [RW-CKPT-4]", async () => {
    const run_id = await createRun(server.url);
    const step = { step_index: 0, step_kind: "done", checkpoint_id: "ckpt_1" };
    await append(server.url, run_id, say("step.boundary", step));
    const refused = await control(server.url, run_id, "rewind", { checkpoint_id: "ckpt_1" });
    expect([refused.status, codeOf(refused)]).toEqual([410, "KAI-RUN-POINT-0002"]);
    const { checkpoints } = (await call(server.url, "GET", runPath(run_id, "checkpoints"))).body;
    expect(checkpoints).toEqual([
      { ...step, pos: 3, seq: 2, ts: expect.any(String), bytes: null, kept: false },
    ]);
    expect((await fork(run_id, { checkpoint_id: "ckpt_1" })).body.workspace).toBe("fresh");
    expect((await getRun(server.url, run_id)).state).toBe("running");
  });
});
