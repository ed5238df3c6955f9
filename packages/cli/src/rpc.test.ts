// `runwire rpc` as a program meets it that starts it: a process with lines on stdin and stdout.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Gateway } from "@runwire/client";
import { type Facts, runtimeJsonRpc, validateRuntime } from "@runwire/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rpcSession } from "./rpc/session.js";
import { bin, objectsOf, pipe, type Running, start } from "./testing/command.js";
import { served } from "./testing/served.js";
import { numberedLines } from "./wires/numbered-lines.js";

const server = served("rpc");

const ask = (id: unknown, method: string, params?: Facts): Facts => ({
  jsonrpc: "2.0",
  ...(id === undefined ? {} : { id }),
  method,
  ...(params === undefined ? {} : { params }),
});
const lines = (...messages: readonly unknown[]): string =>
  messages.map((message) => `${typeof message === "string" ? message : JSON.stringify(message)}\n`).join("");

interface Talk {
  readonly said: readonly Facts[];
  /** Resolves with all that was said, once one of it is what is waited for. */
  until(is: (said: Facts) => boolean): Promise<readonly Facts[]>;
  ask(...messages: readonly unknown[]): void;
  readonly process: Running;
}

function talk(...flags: readonly string[]): Talk {
  const process = start(["rpc", ...flags], server.env);
  return {
    process,
    get said() {
      return objectsOf(process.out);
    },
    async until(is) {
      for (;;) {
        if (this.said.some(is)) return this.said;
        await process.until(/\n/);
      }
    },
    ask: (...messages) => process.type(lines(...messages)),
  };
}

const answerTo =
  (id: unknown) =>
  (said: Facts): boolean =>
    said.id === id;
function resultOf(said: readonly Facts[], id: unknown): Facts {
  return said.find(answerTo(id))?.result as Facts;
}
const isClosed = ({ method }: Facts): boolean => method === "closed";
const events = (said: readonly Facts[]): readonly Facts[] => said.filter(({ method }) => method === "event");
const paramsOf = (said: readonly Facts[]): readonly Facts[] => said.map(({ params }) => params as Facts);

async function recorded(...drafts: readonly Facts[]): Promise<string> {
  const { run_id } = await server.api.createRun({ prompt: "go", producer: "external", lease_ms: 600_000 });
  await server.api.append(run_id, drafts as unknown as Parameters<Gateway["append"]>[1]);
  return run_id;
}

const text = (words: string): Facts => ({ type: "text.delta", payload: { text: words } });
const done: Facts = { type: "run.lifecycle", payload: { state: "done" } };

describe("runwire rpc", () => {
  it("answers requests, batches and what is wrong in their order, and ends with its input [RW-RPC-1] [RW-RPC-2]", async () => {
    const input = lines(
      ask(1, "ping"),
      "{",
      ask(undefined, "ping"),
      ask("two", "runs.list", { limit: 1 }),
      ask(null, "ping"),
      [],
      3,
      { jsonrpc: "1.0", id: 5, method: "ping" },
      { jsonrpc: "2.0", id: 6, method: 6 },
      { jsonrpc: "2.0", id: {}, method: "ping" },
      ask(7, "runs.fly"),
      ask(8, "runs.get", {}),
      ask(9, "runs.get", { run_id: "run_1", loudly: true }),
      { jsonrpc: "2.0", id: 10, method: "ping", params: [1] },
      [ask(11, "ping"), ask(undefined, "nothing"), 12, ask("13", "runs.get", { run_id: "run_none" })],
      [ask(undefined, "ping")],
      ask(14, "runs.unsubscribe", { subscription: "sub_9" }),
      ask(14, "runs.subscribe", { run_id: "run_1", dialect: "morse" }),
      ask(14, "runs.subscribe", { run_id: "run_1", detail: "most" }),
      `${JSON.stringify(ask(15, "ping")).slice(0, -1)}   }\r`,
    );
    const { code, out, err } = await pipe(input, ["rpc"], server.env);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const wrong = (id: unknown, number: number, data?: Facts): Facts => ({
      jsonrpc: "2.0",
      id,
      error: expect.objectContaining({ code: number, ...(data === undefined ? {} : { data }) }),
    });
    const pong = (id: unknown): Facts => ({ jsonrpc: "2.0", id, result: {} });
    expect(objectsOf(out)).toEqual([
      pong(1),
      wrong(null, -32700, { line: 2 }),
      { jsonrpc: "2.0", id: "two", result: { runs: expect.any(Array), next: null } },
      pong(null),
      wrong(null, -32600),
      wrong(null, -32600),
      wrong(5, -32600),
      wrong(6, -32600),
      wrong(null, -32600),
      wrong(7, -32601),
      wrong(8, -32602),
      wrong(9, -32602),
      wrong(10, -32602),
      [pong(11), wrong(null, -32600), wrong("13", -32000, { code: "KAI-RUN-MISSING-0001", retry: false })],
      wrong(14, -32602),
      wrong(14, -32602),
      wrong(14, -32602),
      pong(15),
    ]);
  });

  it("answers the same however its input is cut into pieces [RW-RPC-1]", async () => {
    const input = Buffer.from(
      lines(ask("žluťoučký 🐎", "ping"), "{", [ask(1, "ping"), ask(2, "no")], ask(3, "ping")),
    );
    const saidTo = async (pieces: readonly Uint8Array[]): Promise<string> => {
      let out = "";
      const session = rpcSession({ base: server.url }, async (said) => {
        out += said;
      });
      const given = (async function* () {
        yield* pieces;
      })();
      for await (const { lines: come } of numberedLines(given))
        for (const line of come) await session.take(line);
      return out;
    };
    const whole = await saidTo([input]);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(input.length), { maxLength: 20 }), async (cuts) => {
        const at = [0, ...cuts.sort((a, b) => a - b), input.length];
        expect(await saidTo(at.slice(1).map((to, i) => input.subarray(at[i], to)))).toBe(whole);
      }),
      { numRuns: 50 },
    );
  });

  it("says what a WebSocket of runtime-jsonrpc would, from every cut [RW-RPC-3] [RW-RUNTIME-9]", async () => {
    const run_id = await recorded(
      text("Hello."),
      { type: "tool.start", payload: { call_id: "c1", tool: "ls", input: {} } },
      { type: "tool.end", payload: { call_id: "c1", ok: true } },
      done,
    );
    const said = await stored(run_id);
    const cuts = said.map((_, after) => after);
    const { code, out } = await pipe(
      lines(...cuts.map((after) => ask(after, "runs.subscribe", { run_id, after }))),
      ["rpc", "--wait"],
      server.env,
    );
    expect(code).toBe(0);
    const heard = objectsOf(out);
    for (const after of cuts) {
      const { subscription } = resultOf(heard, after);
      const own = heard.filter((one) => one.subscription === subscription);
      expect(own.map(({ subscription: _, ...message }) => message)).toEqual([
        ...said.slice(after),
        { jsonrpc: "2.0", method: "closed", params: { run_id, close: "finished" } },
      ]);
      expect(heard.findIndex(answerTo(after))).toBeLessThan(heard.indexOf(own[0] as Facts));
    }
    const decoder = runtimeJsonRpc.decoder();
    for (const one of events(heard)) decoder.decode({ data: JSON.stringify(one) });
  });

  it("begins with a snapshot, and tells of a gap and of a cursor that is none [RW-RPC-3] [RW-RUNTIME-8]", async () => {
    const run_id = await recorded(text("Hello."), done);
    const asked = [{ snapshot: true }, { snapshot: true, after: 1 }, { after: 999 }];
    const { out } = await pipe(
      lines(...asked.map((params, id) => ask(id, "runs.subscribe", { run_id, ...params }))),
      ["rpc", "--wait"],
      server.env,
    );
    const said = objectsOf(out);
    const first = (id: number): readonly unknown[] => {
      const { subscription } = resultOf(said, id);
      const own = paramsOf(events(said).filter((one) => one.subscription === subscription));
      expect(own.flatMap((message) => validateRuntime(message))).toEqual([]);
      return own.slice(0, 3).map(({ type }) => type);
    };
    expect(first(0)).toEqual(["snapshot.updated", "turn.completed", "run.status"]);
    expect(first(1)).toEqual(["snapshot.updated", "snapshot.repaired", "turn.completed"]);
    expect(first(2)).toEqual(["snapshot.updated", "run.status", "turn.submitted"]);
  });

  it("follows a run through kills of the server and of itself: together that is the whole [RW-RPC-3]", async () => {
    const run_id = await recorded(text("one "));
    const first = talk();
    first.ask(ask(1, "runs.subscribe", { run_id }));
    const begun = events(await first.until(({ params }) => (params as Facts)?.type === "model.delta"));
    await server.again();
    await server.api.append(run_id, [
      { type: "step.boundary", payload: { step_index: 0, step_kind: "done" } },
    ]);
    const isStep = ({ params }: Facts): boolean => (params as Facts)?.type === "x.runwire.step.boundary";
    const heard = events(await first.until(isStep));
    expect(heard.slice(0, begun.length)).toEqual(begun);
    first.process.kill("SIGKILL");
    await first.process.exited;
    await server.api.append(run_id, [{ type: "text.delta", payload: { text: "two" } }, done] as never);
    const { sequence: after } = paramsOf(heard.slice(-1))[0] as Facts;
    const again = talk();
    again.ask(ask("again", "runs.subscribe", { run_id, after }));
    const rest = events(await again.until(isClosed));
    again.process.close();
    expect((await again.process.exited).code).toBe(0);
    expect(paramsOf([...heard, ...rest])).toEqual(paramsOf(await stored(run_id)));
  });

  it("tells finished from broken from left, and says nothing more after an unsubscribe [RW-RPC-4]", async () => {
    const [ending, erased, leftOpen, silenced] = await Promise.all([
      recorded(text("a")),
      recorded(text("b")),
      recorded(text("c")),
      recorded(text("d")),
    ]);
    const session = talk();
    session.ask(
      ...[ending, erased, leftOpen, silenced].map((run_id, id) => ask(id, "runs.subscribe", { run_id })),
    );
    const deltas = ({ said }: Talk): number =>
      paramsOf(events(said)).filter(({ type }) => type === "model.delta").length;
    await session.until(() => deltas(session) === 4);
    const of = (id: number): unknown => resultOf(session.said, id).subscription;
    session.ask(ask("quiet", "runs.unsubscribe", { subscription: of(3) }));
    await session.until(answerTo("quiet"));
    await server.api.append(silenced as string, [done] as never);
    await server.api.append(ending as string, [done] as never);
    await session.until(isClosed);
    await server.api.eraseRun(erased as string);
    await session.until(({ method, subscription }) => method === "closed" && subscription === of(1));
    session.process.close();
    const { code, out, err } = await session.process.exited;
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const closes = objectsOf(out).filter(isClosed);
    expect(closes.map(({ subscription, params }) => [subscription, (params as Facts).close])).toEqual([
      [of(0), "finished"],
      // It heard its run end before it was gone, or not.
      [of(1), expect.stringMatching(/finished|broken/)],
      [of(2), "leaving"],
    ]);
    const silent = objectsOf(out).findIndex(answerTo("quiet"));
    expect(
      objectsOf(out)
        .slice(silent)
        .filter(({ subscription }) => subscription === of(3)),
    ).toEqual([]);
    const { out: gone } = await pipe(
      lines(ask(1, "runs.subscribe", { run_id: erased })),
      ["rpc", "--wait"],
      server.env,
    );
    expect(objectsOf(gone)[0]).toMatchObject({ error: { data: { code: "KAI-STREAM-CONN-0002" } } });
  });

  it("tells why a run cannot be followed any more [RW-RPC-4]", async () => {
    const run_id = await recorded(text("a"));
    const gone = { error: { code: "KAI-STREAM-CONN-0002", message: "erased", retry: false } };
    let out = "";
    const session = rpcSession(
      {
        base: server.url,
        fetch: async (at, options) =>
          String(at).includes("/stream") ? Response.json(gone, { status: 410 }) : fetch(at, options),
      },
      async (said) => {
        out += said;
      },
    );
    await session.take({ number: 1, text: JSON.stringify(ask(1, "runs.subscribe", { run_id })) });
    await session.subscriptions.ended();
    expect(objectsOf(out)[1]).toMatchObject({
      method: "closed",
      params: { run_id, close: "broken", error: { code: -32000, data: { code: "KAI-STREAM-CONN-0002" } } },
      subscription: "sub_1",
    });
  });

  it("creates, writes and orders runs, once where it is asked twice [RW-RPC-5]", async () => {
    const session = talk();
    const result = async (method: string, params: Facts): Promise<Facts> => {
      const id = `${method} ${session.said.length}`;
      session.ask(ask(id, method, params));
      const answer = (await session.until(answerTo(id))).find(answerTo(id)) as Facts;
      return (answer.result ?? answer.error) as Facts;
    };
    const asked = { prompt: "go", producer: "external", idempotency_key: "rpc-1" };
    const { run_id } = await result("runs.create", asked);
    expect(await result("runs.create", asked)).toMatchObject({ run_id });
    const claim = { run_id, events: [text("once")], producer: { id: "me", epoch: 1, seq: 1 } };
    await result("runs.append", claim);
    expect(await result("runs.append", claim)).toMatchObject({ first_pos: null });
    const spoken = [{ type: "model.delta", payload: { text: " more" } }];
    await result("runs.append", { run_id, dialect: "runtime", events: spoken });
    expect(await result("runs.append", { run_id, events: [{ type: "text.delta" }] })).toMatchObject({
      code: -32000,
      data: { code: "KAI-STREAM-PROTO-0001" },
    });
    expect(await result("runs.heartbeat", { run_id })).toMatchObject({ state: "running" });
    expect(await result("runs.pause", { run_id })).toMatchObject({ state: "paused" });
    expect(await result("runs.resume", { run_id })).toMatchObject({ state: "running" });
    expect(await result("runs.steer", { run_id, text: "be brief" })).toMatchObject({ run_id });
    expect(await result("runs.redirect", { run_id, instruction: "stop" })).toMatchObject({
      state: "redirecting",
    });
    expect(await result("runs.abort", { run_id, reason: "enough" })).toMatchObject({ state: "aborted" });
    expect(await result("runs.get", { run_id })).toMatchObject({ state: "aborted", reason: "enough" });
    expect(await result("runs.list", { state: "aborted" })).toMatchObject({ runs: [{ run_id }] });
    session.process.close();
    await session.process.exited;
  });

  it("creates a run with a budget, models that go on and a graph that grows [RW-RPC-5]", async () => {
    const asked = {
      agent: "got",
      got_adaptive: true,
      model: "demo",
      fallback_models: ["demo"],
      budget_usd: 0.5,
      producer: "external",
    };
    const { out } = await pipe(lines(ask(1, "runs.create", { ...asked, prompt: "go" })), ["rpc"], server.env);
    expect(objectsOf(out)).toEqual([
      { jsonrpc: "2.0", id: 1, result: expect.objectContaining({ state: "running" }) },
    ]);
  });

  it("answers every kind of action by the id that the stream gave it, of runs below too [RW-RPC-5]", async () => {
    const child_id = `run_child_${process.pid}`;
    const run_id = await recorded(
      { type: "approval.requested", payload: { approval_id: "appr_1" } },
      { type: "clarify.requested", payload: { clarify_id: "clar_1", question: "Which?" } },
      { type: "child.spawn", payload: { child_id, prompt: "dig" } },
      { type: "approval.requested", payload: { approval_id: "appr_2" }, child_id },
    );
    const planned = (
      await server.api.createRun({
        prompt: "go",
        producer: "external",
        planning_gate: "required",
        lease_ms: 600_000,
      })
    ).run_id;
    const plan = { id: "plan_1", steps: [{ id: "s1", title: "Dig" }] };
    await server.api.append(planned, [{ type: "plan.proposal", payload: { plan } }] as never);
    const answers = [
      ask(1, "actions.respond", { run_id, action_id: "appr_1", decision: "once" }),
      ask(2, "actions.respond", { run_id, action_id: "clar_1", answer: "this" }),
      ask(3, "actions.respond", { run_id, action_id: "appr_2", decision: "deny", reason: "no" }),
      ask(4, "actions.respond", { run_id: planned, action_id: "plan_1", decision: "approve" }),
      ask(5, "actions.respond", { run_id, action_id: "appr_9", decision: "once" }),
      ask(6, "actions.respond", { run_id, action_id: "appr_1" }),
    ];
    const { out } = await pipe(lines(...answers), ["rpc"], server.env);
    const said = objectsOf(out);
    expect(said.map(({ error }) => (error as Facts)?.code)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      -32000,
      -32602,
    ]);
    const { transcript } = await server.api.snapshot(run_id);
    expect(transcript.approvals.appr_1?.answer).toMatchObject({ decision: "once" });
    expect(transcript.clarifications.clar_1?.answer).toMatchObject({ answer: "this" });
    expect(transcript.children[child_id]?.transcript.approvals.appr_2?.answer).toMatchObject({
      decision: "deny",
    });
    expect((await server.api.getRun(planned)).state).toBe("running");
  });

  it("answers the run that is named where several ask under one id, and guesses none [RW-RPC-5]", async () => {
    const [one, two] = [1, 2].map((n) => `run_same_${process.pid}_${n}`);
    const run_id = await recorded(
      ...[one, two].flatMap((child_id) => [
        { type: "child.spawn", payload: { child_id, prompt: "dig" } },
        { type: "approval.requested", payload: { approval_id: "a1" }, child_id },
      ]),
    );
    const respond = (id: number, to: unknown): Facts =>
      ask(id, "actions.respond", { run_id: to, action_id: "a1", decision: "once" });
    const input = lines(respond(1, one), respond(2, run_id), respond(3, two));
    const { out } = await pipe(input, ["rpc"], server.env);
    expect(objectsOf(out)).toMatchObject([
      { id: 1, result: { run_id: one, status: "resolved" } },
      { id: 2, error: { code: -32602, message: expect.stringContaining(`${one}, ${two}`) } },
      { id: 3, result: { run_id: two, status: "resolved" } },
    ]);
  });

  it("ends without a word when nobody reads it any more [RW-RPC-2]", async () => {
    const run_id = await recorded(text("a"));
    const child = spawn(process.execPath, [bin, "rpc", "--url", server.url]);
    child.stdin.on("error", () => {});
    let err = "";
    child.stderr.on("data", (said) => {
      err += said;
    });
    child.stdin.write(lines(ask(1, "runs.subscribe", { run_id })));
    await once(child.stdout, "data");
    child.stdout.destroy();
    const exited = once(child, "exit");
    await server.api.append(run_id, [done] as never);
    child.stdin.write(lines(ask(2, "ping")));
    expect(await exited).toEqual([0, null]);
    expect(err).toBe("");
  });

  it("answers that no server is there, and goes on [RW-RPC-5]", async () => {
    const { code, out } = await pipe(lines(ask(1, "runs.list"), ask(2, "ping")), [
      "rpc",
      "--url",
      "http://127.0.0.1:9",
    ]);
    expect(code).toBe(0);
    expect(objectsOf(out)).toMatchObject([
      { id: 1, error: { data: { code: "KAI-STREAM-CONN-0003", retry: true } } },
      { id: 2, result: {} },
    ]);
  });

  it("says in the documents what it says [RW-RPC-3]", async () => {
    const page = readFileSync(new URL("../../../docs/embedding.md", import.meta.url), "utf8");
    const shown = (/^--> [\s\S]*?(?=^```)/m.exec(page)?.[0] ?? "").trimEnd().split("\n");
    const session = talk();
    const names = namer();
    const transcript: string[] = [];
    for (let i = 0; i < shown.length; ) {
      const request = shown[i++] as string;
      expect(request).toMatch(/^--> /);
      let answers = 0;
      while (shown[i + answers]?.startsWith("<-- ")) answers += 1;
      const from = session.said.length;
      session.ask(names.real(request.slice(4)));
      await session.until(() => session.said.length >= from + answers);
      transcript.push(request);
      // The answer and what is heard of it may come in either order.
      const heard = session.said.slice(from).map((said) => `<-- ${names.shown(JSON.stringify(said))}`);
      expect([...heard].sort()).toEqual(shown.slice(i, i + answers).sort());
      i += answers;
    }
    expect(transcript.length).toBeGreaterThan(2);
    session.process.close();
    await session.process.exited;
  });

  /** The stream as a reader of HTTP has it, in JSON-RPC. */
  async function stored(run_id: string): Promise<readonly Facts[]> {
    const answer = await fetch(`${server.url}/v1/agent/runs/${run_id}/replay.jsonl?dialect=runtime-jsonrpc`);
    return objectsOf(await answer.text());
  }
});

/** Ids are counted from 1 by their kind, and every time is the same. */
function namer(): { real(text: string): string; shown(text: string): string } {
  const known = new Map<string, string>();
  const counts = new Map<string, number>();
  return {
    shown: (text) =>
      text
        .replace(/\b(run|sess|evt|turn|msg)_[0-9A-HJKMNP-TV-Z]{26}\b/g, (id, kind: string) => {
          if (!known.has(id)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
          const name = known.get(id) ?? `${kind}_${counts.get(kind)}`;
          known.set(id, name);
          return name;
        })
        .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "2026-05-14T19:42:13.124Z"),
    real: (text) => [...known].reduce((said, [id, name]) => said.replaceAll(`"${name}"`, `"${id}"`), text),
  };
}
