// Each scenario measures one server and answers with figures; main.ts runs them side by side and prints ratios.
// Counts are verified: a figure for events that did not arrive would be worth nothing.

import { connect, type Socket } from "node:net";
import { inParallel, openReader, poster } from "./load.js";
import type { Server, Target } from "./process.js";

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

const toolEnd = (i: number): string =>
  JSON.stringify({
    type: "tool.end",
    payload: { call_id: `call_${i}`, ok: true, output: { note: "n".repeat(60) } },
  });

/** One event a turn to many readers: CPU per delivered event. */
export function fanOut(readers: number, turns: number): Scenario {
  return {
    name: `fan-out, 1 run × ${readers} SSE readers, one event a turn`,
    measures: "server CPU µs per delivered event",
    async run(server) {
      const post = poster(server.url, 1);
      const { append, stream } = await server.open(post);
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
      const { append } = await server.open(post);
      const body = `[${toolEvent(1)}]`;
      // A server that has just started compiles its own code; what is measured is one that runs.
      await inParallel(count / 4, connections, () => post.post(append, body));
      const cpuBefore = server.cpuMs();
      const started = performance.now();
      await inParallel(count, connections, () => post.post(append, body));
      const seconds = (performance.now() - started) / 1000;
      const cpuMs = server.cpuMs() - cpuBefore;
      post.close();
      return { "events/s": count / seconds, "CPU µs each": (cpuMs * 1000) / count };
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
      await inParallel(runs, 16, async () => targets.push(await server.open(post)));
      const body = `[${Array.from({ length: batchEvents }, (_, i) => toolEvent(i)).join(",")}]`;
      await inParallel(batches / 4, 16, (i) => post.post((targets[i % runs] as Target).append, body));
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
  const rate = async (server: Server, path: string): Promise<number> => {
    const started = performance.now();
    const reader = await openReader(server.url, path, undefined, false);
    await reader.ended;
    if (reader.bytes < 1e5) throw new Error(`only ${reader.bytes} bytes came from ${server.name}`);
    return reader.bytes / 1e6 / ((performance.now() - started) / 1000);
  };
  return {
    name: `replay of ${events} events`,
    measures: "MB a second",
    async run(server) {
      const post = poster(server.url, 4);
      const record = async (count: number): Promise<string> => {
        if (server.name !== "runwire") return "/bytes?mb=32";
        const { append, stream } = await server.open(post);
        const batch = 500;
        const body = `[${Array.from({ length: batch }, (_, i) => toolEnd(i)).join(",")}]`;
        await inParallel(count / batch, 4, () => post.post(append, body));
        await post.post(append, '[{"type":"run.lifecycle","payload":{"state":"done"}}]');
        return stream;
      };
      // Another run first: cold is the log, not the code that reads it.
      await rate(server, await record(events / 10));
      const stream = await record(events);
      const cold = await rate(server, stream);
      const warm = await rate(server, stream);
      if (server.name === "runwire") {
        const counted = await openReader(server.url, stream);
        await counted.ended;
        if (counted.events !== events) throw new Error(`${counted.events} of ${events} events`);
      }
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
      let measuredFrom = Number.POSITIVE_INFINITY;
      const shared = server.name === "node:http";
      const targets: Target[] = [];
      await inParallel(runs, 16, async () => targets.push(await server.open(post)));
      const mark = /"note":"([0-9.]+)"/g;
      const readers: { close(): void }[] = [];
      const hear = (chunk: Buffer): void => {
        const now = performance.now();
        if (now < measuredFrom) return;
        for (const [, sent] of chunk.toString("latin1").matchAll(mark)) samples.push(now - Number(sent));
      };
      // The null server knows no runs: each of its streams hears everything, so it gets fewer of them.
      const streams = shared ? targets.slice(0, 1) : targets;
      await inParallel(streams.length * readersPerRun, 32, async (i) => {
        readers.push(await openReader(server.url, (streams[i % streams.length] as Target).stream, hear));
      });
      const total = hertz * (seconds + warmUpSeconds) * runs;
      const started = performance.now();
      measuredFrom = started + warmUpSeconds * 1000;
      const pending: Promise<unknown>[] = [];
      for (let sent = 0; sent < total; ) {
        await later();
        const due = Math.min(total, ((performance.now() - started) / 1000) * hertz * runs);
        for (; sent < due; sent++) {
          const note = String(performance.now());
          const event = { type: "tool.end", payload: { call_id: "c", ok: true, output: { note } } };
          pending.push(post.post((targets[sent % runs] as Target).append, JSON.stringify([event])));
        }
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

const warmUpSeconds = 2;

/** About a millisecond, without keeping a core busy that the server needs. */
function later(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1));
}

/** What a connection costs that says nothing. */
export function idleReaders(readers: number): Scenario {
  return {
    name: `${readers} idle SSE readers`,
    measures: "KB of memory each",
    async run(server) {
      const post = poster(server.url, 1);
      const { stream } = await server.open(post);
      const warm = await Promise.all(Array.from({ length: 500 }, () => openReader(server.url, stream)));
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

/** What readers that stopped reading cost while a run goes on: the same load, with them and without. */
export function stalledReaders(readers: number, megabytes: number): Scenario {
  return {
    name: `${readers} stalled readers while ${megabytes} MB are appended`,
    measures: "MB of memory for each",
    async run(server) {
      const post = poster(server.url, 1);
      const grow = async (stalled: number): Promise<number> => {
        const { append, stream } = await server.open(post);
        const sockets = await Promise.all(
          Array.from({ length: stalled }, () => stalledSocket(server.url, stream)),
        );
        const before = server.rssBytes();
        const text = "t".repeat(10_000);
        const delta = JSON.stringify({ type: "text.delta", payload: { text } });
        const body = `[${Array.from({ length: 10 }, () => delta).join(",")}]`;
        for (let i = 0; i < megabytes * 10; i++) await post.post(append, body);
        const grown = server.rssBytes() - before;
        for (const socket of sockets) socket.destroy();
        return grown / 1e6;
      };
      // The first growth is the heap's own; the second is what the load costs without anybody stalled.
      await grow(0);
      const without = await grow(0);
      const grown = await grow(readers);
      post.close();
      return { MB: Math.max(0, grown - without) / readers };
    },
  };
}

async function stalledSocket(url: URL, path: string): Promise<Socket> {
  const socket = connect(Number(url.port), url.hostname);
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`);
  await new Promise((resolve) => socket.once("data", resolve));
  socket.pause();
  return socket;
}
