// The SDK against a real server, through a network that breaks: what it follows is the log, and what it
// produces is stored once.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import {
  follow,
  gateway as gatewayAt,
  ndjsonSource,
  openProducer,
  type RunStreamOptions,
  runsSource,
  sseSource,
  webSocketSource,
} from "@runwire/client";
import { type Draft, type Event, limits, unfitJson } from "@runwire/protocol";
import { createKey, revokeKey, startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { type FaultProxy, faultProxy } from "../fault-proxy.js";
import { allEvents, append, control, createRun, lifecycle, say, text } from "./calls.js";
import { chance } from "./chance.js";
import { storyOfEveryType } from "./story.js";
import { underTest } from "./under-test.js";

const luck = chance("client");

const server = underTest(startGateway);

/** Its first connections end somewhere in their answers. */
function breaking(cuts: number, bytesMax = 8000): Promise<FaultProxy> {
  const { hostname, port } = new URL(server.url);
  return faultProxy({ host: hostname, port: Number(port) }, (n) =>
    n < cuts ? { cut: { afterBytes: luck.whole(0, bytesMax), how: luck.pick(["fin", "rst"]) } } : {},
  );
}

/** Writes a run in small batches. */
async function write(run_id: string, drafts: readonly Draft[]): Promise<void> {
  for (let at = 0; at < drafts.length; ) {
    const events = luck.whole(1, 12);
    await append(server.url, run_id, ...drafts.slice(at, at + events));
    at += events;
  }
}

const sources = {
  sse: sseSource,
  ndjson: ndjsonSource,
  websocket: (stream: RunStreamOptions) => webSocketSource({ ...stream, WebSocket: WebSocket as never }),
  "several runs": ({ run_id, ...stream }: RunStreamOptions) => runsSource({ ...stream, runs: [run_id] }),
};

describe("the SDK", () => {
  const cases = Object.keys(sources).flatMap((source) =>
    (["koder", "runwire"] as const).map((dialect) => ({ source: source as keyof typeof sources, dialect })),
  );

  it.each(cases)(
    "follows a run through cuts, once and in order: $source, $dialect",
    async ({ source, dialect }) => {
      const proxy = await breaking(6);
      const run_id = await createRun(server.url);
      const writing = write(run_id, storyOfEveryType(luck.whole(0, 2 ** 30)));
      const heard: Event[] = [];
      for await (const item of follow(sources[source]({ base: proxy.url, run_id, dialect }), {
        random: () => 0,
      })) {
        expect(item.kind).toBe("event");
        if (item.kind === "event") heard.push(item.event);
      }
      await writing;
      const stored = await allEvents(server.url, run_id, { dialect, detail: "default" });
      expect(heard.map(({ id }) => id)).toEqual(stored.map(({ id }) => id));
      expect(heard.map(({ payload }) => payload)).toEqual(stored.map(({ payload }) => payload));
      expect(proxy.counters.cuts).toBeGreaterThan(0);
      await proxy.close();
    },
  );

  it.each(["sse", "websocket"] as const)(
    "follows a run to its end over a slow and distant link that breaks once: %s",
    async (source) => {
      const { hostname, port } = new URL(server.url);
      // As 3G: 300 ms each way, 50 KB a second.
      const link = { delayMs: 300, bytesPerSecond: 50_000 };
      const proxy = await faultProxy({ host: hostname, port: Number(port) }, (n) =>
        n === 0
          ? { ...link, cut: { afterBytes: luck.whole(8000, 12_000), how: luck.pick(["fin", "rst"]) } }
          : link,
      );
      const run_id = await createRun(server.url);
      const story = Array.from({ length: 60 }, (_, i) => [
        say("step.boundary", { step_index: i, step_kind: "text-only" }),
        text(`${i} ${"word ".repeat(20)}`),
      ]).flat();
      await write(run_id, story.slice(0, 60));
      const heard: Event[] = [];
      let writing: Promise<void> | undefined;
      for await (const item of follow(sources[source]({ base: proxy.url, run_id }), { random: () => 0 })) {
        expect(item.kind).toBe("event");
        if (item.kind === "event") heard.push(item.event);
        // The other half comes while it reads.
        writing ??= write(run_id, [...story.slice(60), lifecycle("done")]);
      }
      await writing;
      expect(heard).toEqual(await allEvents(server.url, run_id, { detail: "default" }));
      expect([proxy.counters.cuts, proxy.counters.connections]).toEqual([1, 2]);
      await proxy.close();
    },
  );

  it("reads events that are larger than any draft may be: joined deltas, and a fork [RW-DRAFT-5]", async () => {
    const run_id = await createRun(server.url);
    const rows = Array.from({ length: 1000 }, (_, i) => ({ path: `f${i}`, kind: "file", bytes: i }));
    const deep = JSON.parse(`${"[".repeat(limits.jsonDepthMax - 1)}${"]".repeat(limits.jsonDepthMax - 1)}`);
    const outputs: readonly unknown[] = [rows, rows, rows, rows, deep];
    const calls = outputs.flatMap((output, i) => [
      say("tool.start", { call_id: `call_${i}`, tool: "list" }),
      say("tool.end", { call_id: `call_${i}`, ok: true, output }),
    ]);
    // The first goes out at once; the others are joined.
    const nodes = Array.from({ length: 3000 }, (_, i) => ({ node: i % 2 === 0 ? "x" : "y", chars: 1 }));
    const side = say("text.delta", { text: "a".repeat(nodes.length), nodes });
    const words = [text("a"), side, side];
    await append(server.url, run_id, ...calls, ...words, lifecycle("done"));
    const { body } = await control(server.url, run_id, "fork");
    const forked = body.run_id as string;
    await append(server.url, forked, lifecycle("done"));
    for (const id of [run_id, forked]) {
      for (const dialect of ["koder", "runwire"] as const) {
        const heard: Event[] = [];
        for await (const item of follow(sseSource({ base: server.url, run_id: id, dialect })))
          if (item.kind === "event") heard.push(item.event);
        const stored = await allEvents(server.url, id, { dialect, detail: "default" });
        expect(heard.map(({ payload }) => payload)).toEqual(stored.map(({ payload }) => payload));
      }
      const large = (await allEvents(server.url, id, { detail: "default" })).map((e) => unfitJson(e.payload));
      expect(large.filter((wrong) => wrong !== undefined)).toHaveLength(1);
    }
  });

  it("produces through cuts, and every draft is stored once", async () => {
    const proxy = await breaking(8, 400);
    const run_id = await createRun(server.url);
    const producer = openProducer({
      base: proxy.url,
      run_id,
      lease_ms: 600_000,
      random: () => 0,
      lingerMs: 0,
    });
    const words = Array.from({ length: 300 }, (_, i) => `<${i}>`);
    for (const word of words) {
      await producer.push(text(word));
      // Often enough that many requests are made, and some of them are cut.
      if (luck.whole(0, 9) === 0) await producer.flush();
    }
    await producer.push(lifecycle("done"));
    await producer.close();
    const stored = (await allEvents(server.url, run_id)).filter((e) => e.type === "text.delta");
    expect(stored.map((e) => (e.payload as { text: string }).text)).toEqual(words);
    expect(proxy.counters.cuts).toBeGreaterThan(0);
    await proxy.close();
  });
});

describe("a reader whose key is replaced", () => {
  it.each(["sse", "ndjson", "websocket"] as const)(
    "goes on with the new one on %s, and misses nothing",
    async (wire) => {
      const dataFolder = join(server.folder, `keys-${wire}`);
      mkdirSync(dataFolder);
      const keys = join(dataFolder, "keys.json");
      const newKey = () =>
        createKey(
          keys,
          { tenant: "acme", scopes: ["read", "write"], name: "", lifeMs: undefined },
          Date.now(),
        );
      const writer = newKey();
      let reading = newKey();
      const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });
      const locked = await startGateway({ port: 0, dataFolder, durability: "os", auth: "keys" });
      try {
        const write = gatewayAt({ base: locked.url, headers: bearer(writer.key) });
        const { run_id } = await write.createRun({ prompt: "go", producer: "external", lease_ms: 600_000 });
        const endpoint = { base: locked.url, headers: () => bearer(reading.key) };
        const ticket = async () => (await gatewayAt(endpoint).streamTicket({ run_id })).ticket;
        const source = {
          sse: () => sseSource({ ...endpoint, run_id }),
          ndjson: () => ndjsonSource({ ...endpoint, run_id }),
          websocket: () => webSocketSource({ ...endpoint, run_id, ticket, WebSocket: WebSocket as never }),
        }[wire]();
        const seen: string[] = [];
        for await (const { kind, ...of } of follow(source)) {
          expect(kind).toBe("event");
          const { event } = of as { event: Event };
          seen.push(event.id);
          if (seen.length === 2) {
            const old = reading;
            reading = newKey();
            await write.append(run_id, [text("between")]);
            revokeKey(keys, old.record.id, Date.now());
          }
          if (event.type === "text.delta") await write.append(run_id, [lifecycle("done")]);
        }
        const { events } = await write.events(run_id);
        expect(seen).toEqual(events.map(({ id }) => id));
        expect(events.length).toBeGreaterThan(3);
      } finally {
        await locked.close();
      }
    },
  );

  it("is told that its key has ended where there is no new one", async () => {
    const dataFolder = join(server.folder, "keys-ended");
    mkdirSync(dataFolder);
    const keys = join(dataFolder, "keys.json");
    const wish = { tenant: "acme", scopes: ["read", "write"] as const, name: "", lifeMs: undefined };
    const { key, record } = createKey(keys, wish, Date.now());
    const locked = await startGateway({ port: 0, dataFolder, durability: "os", auth: "keys" });
    try {
      const endpoint = { base: locked.url, headers: { Authorization: `Bearer ${key}` } };
      const { run_id } = await gatewayAt(endpoint).createRun({ prompt: "go", producer: "external" });
      const readAll = async () => {
        for await (const _ of follow(sseSource({ ...endpoint, run_id })))
          revokeKey(keys, record.id, Date.now());
      };
      await expect(readAll()).rejects.toMatchObject({ code: "KAI-AUTH-TOKEN-0003" });
    } finally {
      await locked.close();
    }
  });
});
