// Each scenario measures one server and answers with figures; main.ts runs them side by side and prints ratios.
// Counts are verified: a figure for events that did not arrive would be worth nothing.

import { connect } from "node:net";
import { createRun, inParallel, openReader, type Poster, poster } from "./load.js";
import type { Server } from "./process.js";

/** Figures by name; lower is better for times and memory, higher for rates (`…/s`). */
export type Figures = { readonly [name: string]: number };

export interface Scenario {
  readonly name: string;
  readonly measures: string;
  run(server: Server): Promise<Figures>;
}

const toolEvent = (i: number): string =>
  JSON.stringify({
    type: "tool.start",
    payload: { call_id: `call_${i}`, tool: "bench.tool", input: { note: "n".repeat(60) } },
  });

interface Target {
  readonly append: string;
  readonly stream: string;
}

async function target(server: Server, post: Poster): Promise<Target> {
  if (server.name !== "runwire") return { append: "/append", stream: "/stream" };
  const id = await createRun(post);
  return { append: `/v1/agent/runs/${id}/events`, stream: `/v1/agent/runs/${id}/stream?after=1` };
}

/** One event a turn to many readers: CPU per delivered event. */
export function fanOut(readers: number, turns: number): Scenario {
  return {
    name: `fan-out, 1 run × ${readers} SSE readers, one event a turn`,
    measures: "server CPU µs per delivered event",
    async run(server) {
      const post = poster(server.url, 1);
      const { append, stream } = await target(server, post);
      const opened: Awaited<ReturnType<typeof openReader>>[] = [];
      await inParallel(readers, 50, async () => opened.push(await openReader(server.url, stream)));
      const before = server.cpuMs();
      for (let turn = 1; turn <= turns; turn++) {
        await post.post(append, `[${toolEvent(turn)}]`);
        await Promise.all(opened.map((reader) => reader.reached(turn)));
      }
      const cpuMs = server.cpuMs() - before;
      for (const reader of opened) {
        if (reader.events !== turns) throw new Error(`a reader got ${reader.events} of ${turns} events`);
        reader.close();
      }
      post.close();
      return { µs: (cpuMs * 1000) / (readers * turns) };
    },
  };
}

/** Single events over many connections. */
export function posts(connections: number, count: number): Scenario {
  return {
    name: `single-event POSTs, ${connections} connections`,
    measures: "acknowledged events a second",
    async run(server) {
      const post = poster(server.url, connections);
      const { append } = await target(server, post);
      const body = `[${toolEvent(1)}]`;
      await inParallel(connections * 4, connections, () => post.post(append, body));
      const started = performance.now();
      await inParallel(count, connections, () => post.post(append, body));
      const seconds = (performance.now() - started) / 1000;
      post.close();
      return { "events/s": count / seconds };
    },
  };
}

/** Events spread over live runs, in batches. */
export function liveRuns(runs: number, batches: number, batchEvents: number): Scenario {
  return {
    name: `batches of ${batchEvents}, ${runs} live runs`,
    measures: "acknowledged events a second",
    async run(server) {
      const post = poster(server.url, 16);
      const targets: Target[] = [];
      await inParallel(runs, 16, async () => targets.push(await target(server, post)));
      const body = `[${Array.from({ length: batchEvents }, (_, i) => toolEvent(i)).join(",")}]`;
      const started = performance.now();
      await inParallel(batches, 16, (i) => post.post((targets[i % runs] as Target).append, body));
      const seconds = (performance.now() - started) / 1000;
      post.close();
      return { "events/s": (batches * batchEvents) / seconds };
    },
  };
}

/** A long log read from its start: the first reader finds nothing encoded, the second finds all of it. */
export function replay(events: number): Scenario {
  return {
    name: `replay of ${events} events`,
    measures: "MB a second",
    async run(server) {
      if (server.name !== "runwire") {
        const megabytes = 32;
        const rate = async (): Promise<number> => {
          const started = performance.now();
          const reader = await openReader(server.url, `/bytes?mb=${megabytes}`);
          await reader.ended;
          return reader.bytes / 1e6 / ((performance.now() - started) / 1000);
        };
        const cold = await rate();
        return { "cold MB/s": cold, "warm MB/s": await rate() };
      }
      const post = poster(server.url, 4);
      const { append, stream } = await target(server, post);
      const batch = 500;
      const body = `[${Array.from({ length: batch }, (_, i) => toolEvent(i)).join(",")}]`;
      await inParallel(events / batch, 4, () => post.post(append, body));
      const rate = async (): Promise<number> => {
        const started = performance.now();
        const reader = await openReader(server.url, stream);
        await reader.reached(events);
        const seconds = (performance.now() - started) / 1000;
        reader.close();
        return reader.bytes / 1e6 / seconds;
      };
      const cold = await rate();
      const warm = await rate();
      post.close();
      return { "cold MB/s": cold, "warm MB/s": warm };
    },
  };
}

/** From the append request to the reader's socket, under a steady load. */
export function latency(runs: number, readersPerRun: number, hertz: number, seconds: number): Scenario {
  return {
    name: `latency, ${runs} runs × ${readersPerRun} readers × ${hertz} Hz`,
    measures: "ms from append to delivery",
    async run(server) {
      const post = poster(server.url, 64);
      const samples: number[] = [];
      const shared = server.name !== "runwire";
      const targets: Target[] = [];
      await inParallel(runs, 16, async () => targets.push(await target(server, post)));
      const mark = /"note":"([0-9.]+)"/g;
      const readers: { close(): void }[] = [];
      const hear = (chunk: Buffer): void => {
        const now = performance.now();
        for (const [, sent] of chunk.toString("latin1").matchAll(mark)) samples.push(now - Number(sent));
      };
      // The null server knows no runs: each of its streams hears everything, so it gets fewer of them.
      const streams = shared ? targets.slice(0, 1) : targets;
      await inParallel(streams.length * readersPerRun, 32, async (i) => {
        readers.push(await openReader(server.url, (streams[i % streams.length] as Target).stream, hear));
      });
      const turns = hertz * seconds;
      const gapMs = 1000 / (hertz * runs);
      const started = performance.now();
      const pending: Promise<unknown>[] = [];
      for (let i = 0; i < turns * runs; i++) {
        const dueMs = started + i * gapMs;
        if (performance.now() < dueMs) await untilMs(dueMs);
        const event = {
          type: "tool.start",
          payload: { call_id: `call_${i}`, tool: "t", input: { note: String(performance.now()) } },
        };
        pending.push(post.post((targets[i % runs] as Target).append, JSON.stringify([event])));
      }
      await Promise.all(pending);
      for (const reader of readers) reader.close();
      post.close();
      samples.sort((a, b) => a - b);
      const at = (share: number): number => samples[Math.floor(samples.length * share)] ?? Number.NaN;
      return { "p50 ms": at(0.5), "p99 ms": at(0.99) };
    },
  };
}

function untilMs(dueMs: number): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (performance.now() >= dueMs) resolve();
      else setImmediate(look);
    };
    look();
  });
}

/** What a connection costs that says nothing. */
export function idleReaders(readers: number): Scenario {
  return {
    name: `${readers} idle SSE readers`,
    measures: "KB of memory each",
    async run(server) {
      const post = poster(server.url, 1);
      const { stream } = await target(server, post);
      const warm = await Promise.all(Array.from({ length: 50 }, () => openReader(server.url, stream)));
      const before = server.rssBytes();
      const opened: { close(): void }[] = [...warm];
      await inParallel(readers, 50, async () => opened.push(await openReader(server.url, stream)));
      const grown = server.rssBytes() - before;
      for (const reader of opened) reader.close();
      post.close();
      return { KB: grown / 1024 / readers };
    },
  };
}

/** What a reader that stopped reading costs while a run goes on: the same load, with it and without it. */
export function stalledReader(megabytes: number): Scenario {
  return {
    name: `a stalled reader while ${megabytes} MB are appended`,
    measures: "MB of memory for it",
    async run(server) {
      const post = poster(server.url, 1);
      const grow = async (stalled: boolean): Promise<number> => {
        const { append, stream } = await target(server, post);
        const socket = connect(Number(server.url.port), server.url.hostname);
        if (stalled) {
          socket.write(`GET ${stream} HTTP/1.1\r\nHost: ${server.url.host}\r\n\r\n`);
          await new Promise((resolve) => socket.once("data", resolve));
          socket.pause();
        }
        const before = server.rssBytes();
        const text = "t".repeat(10_000);
        const body = `[${Array.from({ length: 10 }, () => JSON.stringify({ type: "text.delta", payload: { text } })).join(",")}]`;
        for (let i = 0; i < megabytes * 10; i++) await post.post(append, body);
        const grown = server.rssBytes() - before;
        socket.destroy();
        return grown / 1e6;
      };
      await grow(false);
      const without = await grow(false);
      const with_ = await grow(true);
      post.close();
      return { MB: Math.max(0, with_ - without) };
    },
  };
}
