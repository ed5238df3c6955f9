// Runs on NATS subjects, with a real nats-server: whole and in order, whatever is killed meanwhile.

import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect, headers, type Msg, type NatsConnection } from "@nats-io/transport-node";
import { type Clock, gateway, systemClock } from "@runwire/client";
import { type Draft, type Facts, isId, RunwireError, runtimeReader } from "@runwire/protocol";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tool } from "../../conformance/dist/tools.js";
import type { Publisher } from "./nats/publisher.js";
import { answerRequests } from "./nats/requests.js";
import { publishRuns } from "./nats/runs.js";
import { runIn, subjectsOf, tokenOf } from "./nats/subjects.js";
import { leaveMsMax, waitingMax } from "./nats/work.js";
import { selfSigned } from "./testing/certificate.js";
import { linesOf, type Running, start } from "./testing/command.js";
import { type NatsServer, natsServer } from "./testing/nats-server.js";
import { serve, served, serveKeyed } from "./testing/served.js";

const { program, whyNot } = tool("nats-server");
const text = (words: string): Draft => ({ type: "text.delta", payload: { text: words } });
const step = (step_index: number): Draft =>
  ({ type: "step.boundary", payload: { step_index, step_kind: "tool-roundtrip" } }) as Draft;
const done: Draft = { type: "run.lifecycle", payload: { state: "done" } } as Draft;

/** UTF-8 has no halves of pairs. */
const wellFormed = (id: string): string => Buffer.from(id).toString();

describe("a subject", () => {
  it("has one token a run, whatever its id, and names it again [RW-NATS-1]", () => {
    const id = fc.string({ minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(id, id, (a, b) => {
        expect(tokenOf(a)).toMatch(/^[A-Za-z0-9_:%-]+$/);
        expect(tokenOf(a) === tokenOf(b)).toBe(wellFormed(a) === wellFormed(b));
        expect(runIn(`my.own.events.t.${tokenOf(a)}.runtime`, "my.own")).toBe(wellFormed(a));
      }),
    );
    expect(isId("run_01K0000000000000000000000A") && tokenOf("run_01K0000000000000000000000A")).toBe(
      "run_01K0000000000000000000000A",
    );
  });
});

describe("the runs that are published", () => {
  it("are also those that began and ended while the feed was not heard [RW-NATS-2]", async () => {
    const left = new AbortController();
    const nowMs = Date.parse("2026-05-14T12:00:00Z");
    const short = { run_id: "run_short", created_at: "2026-05-14T11:55:00Z" };
    let connections = 0;
    const answer: typeof fetch = async (url) => {
      const { pathname, searchParams } = new URL(String(url));
      if (pathname.endsWith("/runs/stream")) {
        connections += 1;
        const snapshot = { type: "snapshot", pos: connections * 20_000, reset: connections > 1, runs: [] };
        const head = { headers: { "content-type": "text/event-stream" } };
        return new Response(`event: snapshot\ndata: ${JSON.stringify(snapshot)}\n\n`, head);
      }
      if (!pathname.endsWith("/runs")) return new Response(null, { status: 204 });
      const isThere = connections > 1 && !searchParams.has("state");
      return Response.json({ runs: isThere ? [short] : [], next: null });
    };
    const opened = new Promise<string>((resolve) => {
      const publisher: Publisher = {
        async open(run_id) {
          resolve(run_id);
          return { after: undefined, publish: async () => {} };
        },
      };
      const publishing = publishRuns({
        endpoint: { base: "http://127.0.0.1:9", fetch: answer },
        dialect: "runtime",
        subjects: subjectsOf("runwire", "t", "runtime"),
        publisher,
        signal: left.signal,
        now: () => nowMs,
        load: async () => undefined,
        save: async () => {},
        say: () => {},
        ready: () => {},
      });
      publishing.catch((error) => resolve(String(error)));
    });
    expect(await opened).toBe("run_short");
    left.abort();
  });

  it("are known up to the time of the place in the feed, not of its reading [RW-NATS-2]", async () => {
    const left = new AbortController();
    const ts = "2026-05-12T09:00:00.000Z";
    const answer: typeof fetch = async (url) => {
      if (!String(url).includes("/runs/stream")) return new Response(null, { status: 204 });
      const change = { type: "run.lifecycle", pos: 8, run_id: "run_old", ts };
      const head = { headers: { "content-type": "text/event-stream" } };
      return new Response(`id: 8\ndata: ${JSON.stringify(change)}\n\n`, head);
    };
    const saved = await new Promise<unknown>((resolve) => {
      publishRuns({
        endpoint: { base: "http://127.0.0.1:9", fetch: answer },
        dialect: "runtime",
        subjects: subjectsOf("runwire", "t", "runtime"),
        publisher: { open: async () => ({ after: undefined, publish: async () => {} }) },
        signal: left.signal,
        now: () => Date.parse("2026-05-14T12:00:00Z"),
        load: async () => ({ pos: 7, runs: [], ts: "2026-05-12T08:00:00.000Z" }),
        save: async (checkpoint) => resolve(checkpoint()),
        say: () => {},
        ready: () => {},
      }).catch(resolve);
    });
    left.abort();
    expect(saved).toMatchObject({ pos: 8, ts });
  });
});

describe("requests over NATS", () => {
  const noSubjects = subjectsOf("runwire", "t", "runtime");
  const beside = () => ({
    ...{ prefix: "runwire", dialect: "runtime", subjects: noSubjects, ingest: true },
    clock: systemClock,
    signal: new AbortController().signal,
    say: () => {},
  });
  const nobody = new TypeError("fetch failed", {
    cause: Object.assign(new Error("connect"), { code: "ECONNREFUSED" }),
  });

  /** What NATS delivers on `in`, by hand. */
  function delivered(): {
    readonly nc: NatsConnection;
    deliver(run_id: string, onReply?: (reply: Facts) => void): void;
    end(): void;
  } {
    const messages = new PassThrough({ objectMode: true, highWaterMark: 100_000 });
    const end = (): void => void messages.end();
    const written = Object.assign(messages, { drain: async () => end() });
    async function* none(): AsyncGenerator<Partial<Msg>> {}
    return {
      nc: {
        subscribe: (subject: string) =>
          subject.includes(".in.") ? written : Object.assign(none(), { drain: async () => {} }),
      } as unknown as NatsConnection,
      deliver(run_id, onReply) {
        const msg: Partial<Msg> = {
          subject: `runwire.in.t.${run_id}`,
          data: new Uint8Array(10),
          json: <T>() => text("x") as T,
          respond(data) {
            onReply?.(JSON.parse(String(data)));
            return true;
          },
          ...(onReply === undefined ? {} : { reply: "_INBOX.me" }),
        };
        messages.write(msg);
      },
      end,
    };
  }

  it("are asked so many at a time, of the server, and in their order of one run", async () => {
    const release: (() => void)[] = [];
    const slow = () =>
      new Promise<Response>((resolve) => {
        release.push(() => resolve(Response.json({ first_pos: 3, last_pos: 3 })));
      });
    const { nc, deliver, end } = delivered();
    for (let i = 0; i < 200; i++) deliver(`run_${i % 100}`);
    const answered = answerRequests({
      ...beside(),
      endpoint: { base: "http://127.0.0.1:9", fetch: slow },
      nc,
    });
    for (let i = 0; i < 200; i++) {
      await expect.poll(() => release.length, { interval: 1 }).toBeGreaterThan(i);
      expect(release.length - i).toBeLessThanOrEqual(64);
      release[i]?.();
    }
    end();
    await answered;
  });

  it("wait for a server that is away up to a limit; more is dropped and counted, or told [RW-NATS-4]", async () => {
    let isThere = false;
    const said: string[] = [];
    const replies: Facts[] = [];
    let stored = 0;
    const fetched: typeof fetch = async () => {
      if (!isThere) throw nobody;
      stored += 1;
      return Response.json({ first_pos: 3, last_pos: 3 });
    };
    const { nc, deliver, end } = delivered();
    const answered = answerRequests({
      ...beside(),
      endpoint: { base: "http://127.0.0.1:9", fetch: fetched },
      nc,
      say: (line) => void said.push(line),
    });
    // More runs than are asked at a time, and one that is told all the same.
    for (let i = 0; i < 100; i++) deliver(`run_${i}`);
    deliver("run_other", (reply) => void replies.push(reply));
    const away = expect.objectContaining({ code: "KAI-STREAM-CONN-0003" });
    await expect.poll(() => replies).toEqual([{ error: away }]);
    // Behind one that waits.
    deliver("run_0", (reply) => void replies.push(reply));
    await expect.poll(() => replies).toEqual([{ error: away }, { error: away }]);
    for (let i = 100; i < waitingMax + 3; i++) deliver("run_0");
    deliver("run_0", (reply) => void replies.push(reply));
    await expect
      .poll(() => replies.at(-1))
      .toEqual({ error: expect.objectContaining({ code: "KAI-LIMIT-RATE-0001", retry: true }) });
    expect(said).toEqual(["10000 messages wait for the server; those that come now are dropped"]);
    isThere = true;
    await expect.poll(() => stored, { timeout: 30_000 }).toBe(waitingMax);
    expect(said.slice(1)).toEqual(["3 messages were dropped, because too many waited for the server"]);
    end();
    await answered;
  });

  it("are done before the bridge leaves, or said [RW-NATS-4]", async () => {
    const left = new AbortController();
    const said: string[] = [];
    const { nc, deliver } = delivered();
    let ring = (): void => {};
    const clock: Clock = {
      nowMs: () => 0,
      after(delayMs, then) {
        if (delayMs === leaveMsMax) ring = then;
        return () => {};
      },
    };
    const answered = answerRequests({
      ...beside(),
      endpoint: {
        base: "http://127.0.0.1:9",
        fetch: async (url) => {
          if (String(url).includes("run_never")) throw nobody;
          return Response.json({ first_pos: 3, last_pos: 3 });
        },
      },
      nc,
      clock,
      signal: left.signal,
      say: (line) => void said.push(line),
    });
    for (const run_id of ["run_never", "run_never", "run_1", "run_1"]) deliver(run_id);
    left.abort();
    await expect
      .poll(() => {
        ring();
        return said;
      })
      .toEqual(["2 messages are left undone: the server did not answer in time"]);
    await answered;
  });

  it("fetch little more than a reply holds", async () => {
    const large = { type: "model.delta", payload: { text: "x".repeat(32 * 1024) } };
    let fetched = 0;
    const page: typeof fetch = async (url) => {
      const { searchParams } = new URL(String(url));
      const [after, limit] = ["after", "limit"].map((name) => Number(searchParams.get(name)));
      const count = Math.min(limit ?? 0, 500 - (after ?? 0));
      fetched += count;
      return Response.json({ events: Array(count).fill(large), next: (after ?? 0) + count });
    };
    const replies: { messages: unknown[]; next: number }[] = [];
    async function* asked(): AsyncGenerator<Partial<Msg>> {
      yield {
        subject: "runwire.ask.t.run_1.runtime",
        data: new Uint8Array(),
        reply: "_INBOX.me",
        respond: (data) => replies.push(JSON.parse(String(data))) === 1,
      };
    }
    await answerRequests({
      endpoint: { base: "http://127.0.0.1:9", fetch: page },
      nc: { subscribe: asked, info: { max_payload: 1024 * 1024 } } as unknown as NatsConnection,
      ...beside(),
      ingest: false,
    });
    await expect.poll(() => replies).toHaveLength(1);
    const [{ messages, next } = expect.fail()] = replies;
    expect([messages.length, next]).toEqual([31, 31]);
    expect(fetched).toBeLessThan(100);
  });

  const claim = { "Producer-Id": "me", "Producer-Epoch": "1", "Producer-Seq": "1" };
  const lost = new TypeError("fetch failed", { cause: new Error("other side closed") });
  const leaving = new RunwireError("KAI-STREAM-LEAVING-0001");

  it.each([
    ["nobody listened", nobody, {}, "", 3],
    ["its answer was lost, under a claim", lost, claim, "", 3],
    ["its answer was lost, without one", lost, {}, "", 1],
    ["the server was leaving", leaving, {}, "", 3],
    ["an answer is waited for", nobody, claim, "_INBOX.me", 1],
  ])(
    "append what is published until it is stored, and once: %s [RW-NATS-4]",
    async (_, trouble, given, reply, count) => {
      const own = headers();
      for (const [name, value] of Object.entries(given)) own.set(name, value);
      const [replies, said]: string[][] = [[], []];
      async function* written(): AsyncGenerator<Partial<Msg>> {
        yield {
          subject: "runwire.in.t.run_1",
          headers: own,
          reply,
          data: new Uint8Array(),
          json: <T>() => text("x") as T,
          respond: (data) => replies?.push(String(data)) === 1,
        };
      }
      async function* none(): AsyncGenerator<Partial<Msg>> {}
      let asked = 0;
      await answerRequests({
        endpoint: {
          base: "http://127.0.0.1:9",
          fetch: async () => {
            asked += 1;
            if (asked < 3 && trouble instanceof RunwireError)
              return Response.json(trouble, { status: trouble.row.status });
            if (asked < 3) throw trouble;
            return Response.json({ first_pos: 3, last_pos: 3 });
          },
        },
        nc: {
          subscribe: (subject: string) => (subject.includes(".in.") ? written() : none()),
        } as unknown as NatsConnection,
        ...beside(),
        say: (line) => void said?.push(line),
      });
      await expect.poll(() => asked).toBe(count);
      await expect.poll(() => replies?.length).toBe(reply === "" ? 0 : 1);
      const isLost = count === 1 && reply === "";
      await expect.poll(() => said).toEqual(isLost ? [expect.stringContaining("KAI-STREAM-CONN-0003")] : []);
    },
  );
});

describe.skipIf(whyNot !== undefined)("runwire nats", () => {
  const server = served("nats");
  const { folder } = server;
  let nats: NatsServer;
  let nc: NatsConnection;
  let jsm: JetStreamManager;

  beforeAll(async () => {
    nats = await natsServer(program, join(folder, "nats"), "-js");
    nc = await connect({ servers: nats.url, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
    jsm = await jetstreamManager(nc);
  });

  afterAll(async () => {
    await nc?.close();
    await nats?.kill();
  });

  async function bridged(...flags: readonly string[]): Promise<Running> {
    const bridge = start(["nats", "--nats", nats.url, ...flags], server.env);
    await bridge.until(/publishing runs/);
    return bridge;
  }

  async function left(bridge: Running, signal: NodeJS.Signals = "SIGTERM"): Promise<string> {
    const { code, err } = await bridge.kill(signal);
    if (signal === "SIGTERM") expect([code, err]).toEqual([0, expect.any(String)]);
    return err;
  }

  async function created(): Promise<string> {
    return (await server.api.createRun({ prompt: "go", producer: "external", lease_ms: 600_000 })).run_id;
  }

  /** As a reader of HTTP has it. */
  async function stored(run_id: string, dialect = "runtime"): Promise<readonly string[]> {
    const answer = await fetch(`${server.url}/v1/agent/runs/${run_id}/replay.jsonl?dialect=${dialect}`);
    return linesOf(await answer.text());
  }

  interface Kept {
    readonly data: string;
    readonly sequence: string;
    readonly id: string;
  }

  /** What a stream holds of a run. */
  async function kept(stream: string, subject: string): Promise<readonly Kept[]> {
    const { state } = await jsm.streams.info(stream);
    const found: Kept[] = [];
    for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
      const held = await jsm.streams.getMessage(stream, { seq });
      if (held === null || held.subject !== subject) continue;
      const { header } = held;
      found.push({
        data: held.string(),
        sequence: header.get("Runwire-Sequence"),
        id: header.get("Nats-Msg-Id"),
      });
    }
    return found;
  }

  /** Once it holds the run's end. */
  async function keptWhole(stream: string, run_id: string, prefix = "runwire", dialect = "runtime") {
    const said = await stored(run_id, dialect);
    const subject = `${prefix}.events.default.${run_id}.${dialect}`;
    await expect
      .poll(async () => (await jsm.streams.getMessage(stream, { last_by_subj: subject }))?.string())
      .toBe(said.at(-1));
    return { said, held: await kept(stream, subject) };
  }

  it("publishes every message of every run on its subject, in order and under an id of its own [RW-NATS-1] [RW-NATS-2]", async () => {
    const before = await created();
    await server.api.append(before, [text("from before")]);
    const bridge = await bridged("--stream", "WHOLE");
    const heard: Msg[] = [];
    const sub = nc.subscribe("runwire.events.default.*.runtime", {
      callback: (_, msg) => void heard.push(msg),
    });
    const run_id = await created();
    await server.api.append(run_id, [text("Hello."), step(0), done]);
    await server.api.append(before, [done]);
    for (const id of [run_id, before]) {
      const { said, held } = await keptWhole("WHOLE", id);
      expect(held.map(({ data }) => data)).toEqual(said);
      expect(held.map(({ sequence }) => Number(sequence))).toEqual(said.map((_, i) => i + 1));
      expect(new Set(held.map(({ id: own }) => own)).size).toBe(said.length);
    }
    const own = heard.filter(({ subject }) => subject === `runwire.events.default.${run_id}.runtime`);
    const messages = own.map((msg) => msg.json<Facts>());
    expect(own.map(({ headers: given }) => given?.get("Runwire-Event-Id"))).toEqual(
      messages.map(({ eventId }) => eventId),
    );
    expect(messages.at(-1)).toMatchObject({ type: "run.status", payload: { status: "completed" } });
    sub.unsubscribe();
    expect(await left(bridge)).toMatch(/^runwire: connected to NATS [\d.]+ at nats:\/\/127\.0\.0\.1:\d+\n$/);
  });

  it("leaves nothing out and puts nothing in twice, whatever is killed when [RW-NATS-2]", async () => {
    const flags = ["--stream", "KILLS", "--prefix", "kills", "--dialect", "runtime-jsonrpc"];
    // One at a time captures a subject; the prefix keeps the tests apart.
    let bridge = await bridged(...flags);
    const long = await created();
    let count = 0;
    const write = async (events: number): Promise<void> => {
      for (let i = 0; i < events; i++) await server.api.append(long, [text(`${count} `), step(count++)]);
    };
    const ended: string[] = [];
    for (const victim of ["bridge", "nats", "server", "bridge"] as const) {
      const writing = write(victim === "server" ? 3 : 25);
      if (victim === "server") await writing;
      if (victim === "bridge") {
        await left(bridge, "SIGKILL");
        // A whole life without a bridge.
        const short = await created();
        await server.api.append(short, [text("short"), done]);
        ended.push(short);
        await writing;
        bridge = await bridged(...flags);
      } else if (victim === "nats") {
        await nats.kill();
        await writing;
        await nats.start();
      } else {
        await server.again();
      }
    }
    await write(2);
    await server.api.append(long, [done]);
    for (const run_id of [long, ...ended]) {
      const { said, held } = await keptWhole("KILLS", run_id, "kills", "runtime-jsonrpc");
      expect(held.map(({ data }) => data)).toEqual(said);
    }
    await left(bridge);
    // What was published is known at the next start, and is not published again.
    const again = await bridged(...flags);
    const next = await created();
    await server.api.append(next, [done]);
    await keptWhole("KILLS", next, "kills", "runtime-jsonrpc");
    const { said, held } = await keptWhole("KILLS", long, "kills", "runtime-jsonrpc");
    expect(held).toHaveLength(said.length);
    await left(again);
  });

  it("may run twice at once, one of them asleep: one copy of each message is kept, in order [RW-NATS-2]", async () => {
    // So short that nobody's memory of ids helps.
    const windowMs = 100;
    await jsm.streams.add({ name: "TWICE", subjects: ["twice.events.>"], duplicate_window: windowMs * 1e6 });
    const both = await Promise.all([bridged("--prefix", "twice"), bridged("--prefix", "twice")]);
    const run_id = await created();
    const subject = `twice.events.default.${run_id}.runtime`;
    const last = () => jsm.streams.getMessage("TWICE", { last_by_subj: subject });
    await expect.poll(last).not.toBeNull();
    both[0]?.kill("SIGSTOP");
    for (let i = 0; i < 20; i++) await server.api.append(run_id, [text(`${i} `), step(i)]);
    const { length } = await stored(run_id);
    await expect.poll(async () => (await last())?.header.get("Runwire-Sequence")).toBe(String(length));
    await expect
      .poll(async () => Date.now() - Date.parse((await last())?.timestamp ?? ""))
      .toBeGreaterThan(windowMs * 3);
    both[0]?.kill("SIGCONT");
    await server.api.append(run_id, [text("awake"), step(20), done]);
    const { said, held } = await keptWhole("TWICE", run_id, "twice");
    await Promise.all(both.map((bridge) => left(bridge)));
    expect(held.map(({ data }) => data)).toEqual(said);
    expect(await kept("TWICE", subject)).toHaveLength(said.length);
  });

  it("lets a plain subscriber make up for what it missed, by number and by snapshot [RW-NATS-3] [RW-RUNTIME-8]", async () => {
    const bridge = await bridged("--prefix", "plain");
    const run_id = await created();
    await server.api.append(run_id, [text("missed "), step(0), step(1)]);
    await expect.poll(async () => (await stored(run_id)).length).toBeGreaterThan(5);
    const ask = async (body: Facts | ""): Promise<Facts & { messages: Facts[]; next: number | null }> =>
      (
        await nc.request(`plain.ask.default.${run_id}.runtime`, body === "" ? "" : JSON.stringify(body), {
          timeout: 20_000,
        })
      ).json();
    // Listen first: what is said between the two is heard twice, and known again.
    const live: Facts[] = [];
    const over = new Promise<void>((resolve) => {
      nc.subscribe(`plain.events.default.${run_id}.runtime`, {
        callback: (_, msg) => {
          const message = msg.json<Facts>();
          live.push(message);
          const { status } = message.payload as Facts;
          if (message.type === "run.status" && status === "completed") resolve();
        },
      });
    });
    await nc.flush();
    const pages: Facts[] = [];
    for (let after: number | null = 0; after !== null; ) {
      const page: Awaited<ReturnType<typeof ask>> = await ask({ after, limit: 2 });
      expect(page.messages.length).toBeLessThanOrEqual(2);
      pages.push(...page.messages);
      after = page.next;
    }
    const snapshot = await ask({ snapshot: true });
    expect(snapshot.messages.map(({ type }) => type)).toEqual(["snapshot.updated"]);
    expect(snapshot.next).toBe(snapshot.messages[0]?.sequence);
    expect((await ask({ snapshot: true, after: 2 })).messages.map(({ type }) => type)).toEqual([
      "snapshot.updated",
      "snapshot.repaired",
    ]);
    await server.api.append(run_id, [text("heard"), done]);
    await over;
    const said = (await stored(run_id)).map((data) => JSON.parse(data) as Facts);
    const whole = new Map([...pages, ...live].map((message) => [message.sequence, message]));
    expect([...whole.values()].sort((a, b) => Number(a.sequence) - Number(b.sequence))).toEqual(said);
    const reader = runtimeReader();
    for (const message of [...snapshot.messages, ...live]) reader.read(message);
    expect(reader.model.lastSequence).toBe(said.length);
    expect(await ask({ after: 9999 })).toMatchObject({
      messages: [{ type: "snapshot.updated", payload: { recovery: { mode: "replay" } } }],
      next: 0,
    });
    expect(await ask({ after: said.length })).toEqual({ messages: [], next: null });
    expect(await ask("")).toMatchObject({ messages: said });
    for (const wrong of [{ after: -1 }, { after: "x" }, { snapshot: 1 }, { limit: 0.5 }, { loudly: true }])
      expect(await ask(wrong as Facts)).toMatchObject({ error: { code: "KAI-REQUEST-BODY-0002" } });
    const missing = await nc.request("plain.ask.default.run_none.runtime", "{");
    expect(missing.json()).toMatchObject({ error: { code: "KAI-REQUEST-BODY-0001" } });
    expect((await nc.request("plain.ask.default.run_none.runtime")).json()).toMatchObject({
      error: { code: "KAI-RUN-MISSING-0001" },
    });
    await left(bridge);
  });

  it.each(["koder", "loom", "loom-export"])(
    "goes on after a snapshot, and after a reply that was full, by the numbers of %s [RW-NATS-3]",
    async (dialect) => {
      const prefix = `by-${dialect}`;
      const bridge = await bridged("--prefix", prefix, "--dialect", dialect);
      const run_id = await created();
      const ask = async (body: Facts): Promise<{ messages: Facts[]; next: number | null }> =>
        (
          await nc.request(`${prefix}.ask.default.${run_id}.${dialect}`, JSON.stringify(body), {
            timeout: 20_000,
          })
        ).json();
      await server.api.append(run_id, [text("Hello."), step(0), step(1)]);
      expect(await ask({ snapshot: true })).toMatchObject({
        messages: [{ type: "snapshot" }],
        next: (await stored(run_id, dialect)).length,
      });
      // More than NATS takes at once.
      for (let i = 2; i < 30; i++)
        await server.api.append(run_id, [text(`${i}`.padEnd(40_000, "x")), step(i)]);
      const said = (await stored(run_id, dialect)).map((data) => JSON.parse(data) as Facts);
      const pages: Facts[][] = [];
      for (let after: number | null = 0; after !== null; ) {
        const page: Awaited<ReturnType<typeof ask>> = await ask({ after });
        pages.push(page.messages);
        after = page.next;
      }
      expect(pages.length).toBeGreaterThan(1);
      expect(pages.flat()).toEqual(said);
      expect(await ask({ after: said.length + 1 })).toEqual({ messages: said.slice(0, 1), next: 1 });
      await server.api.append(run_id, [done]);
      await left(bridge);
    },
  );

  it("says a live run again, under the same ids, where nothing keeps it and the bridge is killed [RW-NATS-2]", async () => {
    const heard: { readonly id: string; readonly data: string }[] = [];
    const hash = (data: string): string => createHash("sha256").update(data).digest("hex").slice(0, 16);
    nc.subscribe("core.events.default.*.koder", {
      callback: (_, msg) =>
        void heard.push({ id: msg.headers?.get("Nats-Msg-Id") ?? "", data: msg.string() }),
    });
    const flags = ["--prefix", "core", "--dialect", "koder"];
    const first = await bridged(...flags);
    const run_id = await created();
    await server.api.append(run_id, [text("one "), step(0)]);
    const of = (id: string) => heard.filter(({ id: own }) => own.includes(id));
    await expect.poll(() => of(run_id).length).toBe(3);
    await left(first, "SIGKILL");
    await server.api.append(run_id, [step(1)]);
    const second = await bridged(...flags);
    await nats.kill();
    await server.api.append(run_id, [text("two"), done]);
    await nats.start();
    const said = await stored(run_id, "koder");
    await expect.poll(() => of(run_id).at(-1)?.data).toBe(said.at(-1));
    expect([...new Map(of(run_id).map(({ id, data }) => [id, data])).values()]).toEqual(said);
    for (const { id, data } of of(run_id)) expect(id).toContain(hash(data));
    await left(second);
  });

  it("appends what is published to it, once where it comes twice, if it is let [RW-NATS-4]", async () => {
    const bridge = await bridged("--prefix", "in", "--ingest");
    const run_id = await created();
    const write = async (body: unknown, ...claim: readonly [string, string][]): Promise<Facts> => {
      const given = headers();
      for (const [name, value] of claim) given.set(name, value);
      const reply = await nc.request(`in.in.default.${run_id}`, JSON.stringify(body), {
        headers: given,
        timeout: 20_000,
      });
      return reply.json();
    };
    const claim: [string, string][] = [
      ["Producer-Id", "me"],
      ["Producer-Epoch", "1"],
      ["Producer-Seq", "1"],
    ];
    expect(await write([text("once")], ...claim)).toMatchObject({ first_pos: 3 });
    expect(await write([text("once")], ...claim)).toMatchObject({ first_pos: null });
    const spoken = { type: "model.delta", payload: { text: " more" } };
    expect(await write(spoken, ["Runwire-Dialect", "runtime"])).toMatchObject({ first_pos: 4 });
    expect(await write({ type: "text.delta" })).toMatchObject({ error: { code: "KAI-STREAM-PROTO-0001" } });
    // A name that is misspelt must not make a claim none.
    expect(await write(text("twice"), ["ProducerId", "me"], ["Producer-Seq", "2"])).toMatchObject({
      error: { code: "KAI-STREAM-PARAM-0001" },
    });
    // Without asking for an answer, in their order.
    for (let i = 0; i < 10; i++) nc.publish(`in.in.default.${run_id}`, JSON.stringify(step(i)));
    nc.publish(`in.in.default.${run_id}`, JSON.stringify(done));
    await expect.poll(async () => (await server.api.getRun(run_id)).state).toBe("done");
    const { transcript } = await server.api.snapshot(run_id);
    expect(transcript.steps).toHaveLength(10);
    nc.publish(`in.in.default.${run_id}`, JSON.stringify(done));
    await nc.flush();
    expect(await write(done)).toMatchObject({ error: { code: "KAI-RUN-ENDED-0001" } });
    expect(await left(bridge)).toContain("[KAI-RUN-ENDED-0001]");
    const deaf = await bridged("--prefix", "deaf");
    await expect(nc.request(`deaf.in.default.${run_id}`, "{}")).rejects.toThrow(/no responders/);
    await left(deaf);
  });

  it("appends what it has taken before it leaves [RW-NATS-4]", async () => {
    const bridge = await bridged("--prefix", "parting", "--ingest");
    const run_id = await created();
    for (let i = 0; i < 100; i++) nc.publish(`parting.in.default.${run_id}`, JSON.stringify(step(i)));
    await nc.flush();
    await left(bridge);
    const { transcript } = await server.api.snapshot(run_id);
    expect(transcript.steps).toHaveLength(100);
  });

  it("has a checkpoint also where NATS takes no list of all its runs, and makes up for what ended since [RW-NATS-2]", async () => {
    const conf = join(folder, "tiny.conf");
    writeFileSync(conf, "max_payload: 6000\n");
    const tiny = await natsServer(program, join(folder, "tiny"), "-js", "-c", conf);
    const many = await serve(join(folder, "many"));
    const api = gateway({ base: many.url });
    const create = async (): Promise<string> =>
      (await api.createRun({ prompt: "go", producer: "external", lease_ms: 600_000 })).run_id;
    const runs = await Promise.all(Array.from({ length: 200 }, create));
    const flags = ["nats", "--nats", tiny.url, "--stream", "MANY"];
    const own = await connect({ servers: tiny.url });
    const held = await jetstreamManager(own);
    const bridged = async (): Promise<Running> => {
      const bridge = start(flags, { RUNWIRE_URL: many.url });
      await bridge.until(/publishing runs/);
      return bridge;
    };
    const isPublished = async (run_id: string): Promise<boolean> => {
      const last_by_subj = `runwire.events.default.${run_id}.runtime`;
      const last = await held.streams.getMessage("MANY", { last_by_subj });
      const { events } = await api.messages(run_id, "runtime", { limit: 200 });
      return last?.header.get("Runwire-Sequence") === String(events.length);
    };
    await left(await bridged(), "SIGKILL");
    const short = await create();
    for (const run_id of [short, runs[7] ?? ""]) await api.append(run_id, [done]);
    const again = await bridged();
    for (const run_id of [short, runs[7] ?? ""])
      await expect.poll(() => isPublished(run_id), { timeout: 20_000 }).toBe(true);
    expect(await left(again)).not.toContain("checkpoint");
    await own.close();
    await tiny.kill();
    await many.stop();
  });

  it("publishes a message that NATS does not take as empty, with its number, and says so [RW-NATS-1]", async () => {
    const conf = join(folder, "small.conf");
    writeFileSync(conf, "max_payload: 32768\n");
    const small = await natsServer(program, join(folder, "small"), "-c", conf);
    const own = await connect({ servers: small.url });
    const heard: Msg[] = [];
    own.subscribe("runwire.events.>", { callback: (_, msg) => void heard.push(msg) });
    await own.flush();
    const bridge = start(["nats", "--nats", small.url], server.env);
    await bridge.until(/not kept by JetStream/);
    const run_id = await created();
    await server.api.append(run_id, [text("x".repeat(40_000)), done]);
    await expect
      .poll(() => heard.filter(({ subject }) => subject.includes(run_id)).length)
      .toBe((await stored(run_id)).length);
    const large = heard.filter(({ headers: given }) => given?.has("Runwire-Left-Out"));
    expect(large.map((msg) => msg.data.length)).toEqual([0, 0]);
    const ask = (body: Facts) => own.request(`runwire.ask.default.${run_id}.runtime`, JSON.stringify(body));
    expect((await ask({ after: 0 })).json<Facts>()).toMatchObject({ next: 4 });
    expect((await ask({ after: 4 })).json<Facts>()).toMatchObject({
      error: { code: "KAI-REQUEST-SIZE-0001" },
      next: 5,
    });
    expect(await left(bridge)).toMatch(/more than this NATS takes/);
    await own.close();
    await small.kill();
  });

  it("waits for a NATS and for a server that are away, and says so; what is no NATS is said too [RW-NATS-5]", async () => {
    const late = await natsServer(program, join(folder, "late"));
    await late.kill();
    const early = start(["nats", "--nats", late.url], server.env);
    await expect
      .poll(() => early.err)
      .toMatch(/cannot be reached \(connection refused\); trying again in 0\.25 s/);
    await late.start();
    await early.until(/publishing runs/);
    await left(early);
    const none = start(["nats", "--nats", late.url, "--url", "http://127.0.0.1:9"]);
    await expect
      .poll(() => none.err)
      .toMatch(/the server at http:\/\/127\.0\.0\.1:9 is away \[KAI-STREAM-CONN-0003\]/);
    await left(none);
    const wrong = start(["nats", "--nats", server.url.replace("http", "nats"), "--url", server.url]);
    await expect.poll(() => wrong.err).toMatch(/cannot be reached \(it does not speak NATS, or too slowly\)/);
    await left(wrong);
    const streamless = start(["nats", "--nats", late.url, "--stream", "RUNS", "--url", server.url]);
    expect(await streamless.exited).toMatchObject({
      code: 1,
      err: expect.stringContaining("has no JetStream"),
    });
    await late.kill();
  });

  it("leaves when it is told to, also while NATS is away [RW-NATS-5]", async () => {
    const gone = await natsServer(program, join(folder, "gone"), "-js");
    const bridge = start(["nats", "--nats", gone.url, "--stream", "GONE"], server.env);
    await bridge.until(/publishing runs/);
    const run_id = await created();
    const own = await connect({ servers: gone.url });
    const held = await jetstreamManager(own);
    const last = () =>
      held.streams.getMessage("GONE", { last_by_subj: `runwire.events.default.${run_id}.runtime` });
    await expect.poll(last).not.toBeNull();
    await own.close();
    await gone.kill();
    await expect.poll(() => bridge.err).toContain("is gone");
    await server.api.append(run_id, [text("unheard"), step(0)]);
    // Whoever reads beside it has heard as much.
    await stored(run_id);
    await left(bridge);
  });

  /** A server with two keys of one tenant, and bridges to it. */
  async function keyedServer(name: string, ...flags: readonly string[]) {
    const scopes = "read,write";
    const { url, keys, revoke, stop } = await serveKeyed(join(folder, name), scopes, scopes);
    const [first = "", second = ""] = keys;
    return {
      ...{ first, second },
      api: gateway({ base: url, headers: { authorization: `Bearer ${second}` } }),
      async bridgedBy(RUNWIRE_TOKEN: string): Promise<Running> {
        const bridge = start(["nats", "--nats", nats.url, ...flags], { RUNWIRE_URL: url, RUNWIRE_TOKEN });
        await bridge.until(/publishing runs/);
        return bridge;
      },
      ...{ revoke, stop },
    };
  }

  it("goes on with the runs it was at, with another key where its own was revoked [RW-NATS-2] [RW-NATS-5]", async () => {
    const flags = ["--prefix", "keyed", "--stream", "KEYED"];
    const { first, second, api, bridgedBy, revoke, stop } = await keyedServer("keyed", ...flags);
    const { run_id } = await api.createRun({ prompt: "go", producer: "external", lease_ms: 600_000 });
    const count = async (): Promise<number> =>
      (await kept("KEYED", `keyed.events.acme.${run_id}.runtime`)).length;
    const bridge = await bridgedBy(first);
    await expect.poll(count).toBeGreaterThan(0);
    await revoke(first);
    expect(await bridge.exited).toMatchObject({
      code: 1,
      err: expect.stringContaining("KAI-AUTH-TOKEN-0003"),
    });
    const before = await count();
    const again = await bridgedBy(second);
    await api.append(run_id, [text("heard")]);
    await expect.poll(count).toBeGreaterThan(before);
    await left(again);
    await stop();
  });

  it("ends where its key is refused, also while NATS takes nothing [RW-NATS-5]", async () => {
    await jsm.streams.add({ name: "FULL", subjects: ["full.events.>"], max_msgs: 1, discard: "new" });
    const { first, api, bridgedBy, revoke, stop } = await keyedServer("full", "--prefix", "full");
    await api.createRun({ prompt: "go", producer: "external", lease_ms: 600_000 });
    const bridge = await bridgedBy(first);
    await expect.poll(() => bridge.err).toMatch(/maximum messages exceeded; trying again/);
    await revoke(first);
    expect(await bridge.exited).toMatchObject({
      code: 1,
      err: expect.stringContaining("KAI-AUTH-TOKEN-0003"),
    });
    await stop();
  });

  it("refuses a stream that would answer requests in its place [RW-NATS-5]", async () => {
    await jsm.streams.add({ name: "GREEDY", subjects: ["greedy.>"] });
    const { code, err } = await start(["nats", "--nats", nats.url, "--prefix", "greedy", "--url", server.url])
      .exited;
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringMatching(/subjects overlap.*let no other capture more than greedy\.events\.>/),
    });
  });

  it("says in one line that its account may not listen, and ends [RW-NATS-5]", async () => {
    const conf = join(folder, "locked.conf");
    writeFileSync(
      conf,
      'authorization { users: [{ user: me, password: s3cret, permissions: { subscribe: ["_INBOX.>"] } }] }\n',
    );
    const locked = await natsServer(program, join(folder, "locked"), "-c", conf);
    const at = locked.url.replace("nats://", "nats://me:s3cret@");
    const { code, out, err } = await start(["nats", "--nats", at], server.env).exited;
    await locked.kill();
    expect({ code, out }).toEqual({ code: 1, out: "" });
    const lines = err.trim().split("\n");
    expect(lines.at(-1)).toMatch(
      /^runwire: NATS does not let this account listen on runwire\.ask\.default\./,
    );
    expect(lines.every((line) => line.startsWith("runwire: "))).toBe(true);
  });

  it("brings its credentials, over TLS too, and never says them [RW-NATS-5]", async () => {
    const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
    const made = selfSigned(new Date(Date.now() - 60_000), new Date(Date.now() + 3_600_000));
    writeFileSync(cert, made.certificate);
    writeFileSync(key, made.key);
    const flags = ["--tls", "--tlscert", cert, "--tlskey", key, "--user", "me", "--pass", "s3cret"];
    const safe = await natsServer(program, join(folder, "safe"), ...flags);
    const at = `tls://localhost:${new URL(safe.url.replace(/^\w+:/, "http:")).port}`;
    const attempt = (address: string, ...more: readonly string[]): Running =>
      start(["nats", "--nats", address, ...more], server.env);
    const wrong = await attempt(at.replace("tls://", "tls://me:wr0ng@"), "--ca", cert).exited;
    expect(wrong).toMatchObject({ code: 1, err: expect.stringContaining("refuses these credentials") });
    expect(wrong.err).not.toContain("wr0ng");
    const right = attempt(at.replace("tls://", "tls://me:s3cret@"), "--ca", cert);
    await right.until(/publishing runs/);
    expect(await left(right)).not.toContain("s3cret");
    const nonsense = await attempt("http://me:s3cret@x").exited;
    expect(nonsense).toMatchObject({ code: 1, err: expect.stringContaining("--nats: that is not possible") });
    expect(nonsense.err).not.toContain("s3cret");
    expect(await attempt(at, "--creds", "/no/file").exited).toMatchObject({
      code: 1,
      err: expect.stringContaining("--creds"),
    });
    await safe.kill();
  });
});
