// What a delivery costs.

import { inParallel, type Reader } from "../load.js";
import type { Server, Target } from "../process.js";
import { batchOf, percentile, type Scenario, toolStart } from "./scenario.js";

async function openReaders(server: Server, stream: string, count: number): Promise<readonly Reader[]> {
  const opened: Reader[] = [];
  await inParallel(count, 50, async () => opened.push(await server.reader(stream)));
  return opened;
}

function checkAll(readers: readonly Reader[], events: number): void {
  for (const reader of readers) {
    if (reader.events !== events) throw new Error(`a reader got ${reader.events} of ${events} events`);
    reader.close();
  }
}

/** One event a turn to many readers: CPU per delivered event. */
export function fanOut(readers: number, turnsMax: number): Scenario {
  return {
    name: `fan-out, 1 run × ${readers} SSE readers, one event a turn`,
    measures: "server CPU per delivered event",
    async run(server) {
      const post = server.poster(1);
      const { append, stream } = await server.open(post);
      const opened = await openReaders(server, stream, readers);
      const turn = async (i: number): Promise<void> => {
        await post.post(append, `[${toolStart(i)}]`);
        await Promise.all(opened.map((reader) => reader.reached(i)));
      };
      const turns = Math.ceil(turnsMax * server.share);
      // A server that has just started compiles its own code; what is measured is one that runs.
      const warmUp = Math.ceil(turns / 4);
      for (let i = 1; i <= warmUp; i++) await turn(i);
      const before = server.cpuMs();
      for (let i = warmUp + 1; i <= warmUp + turns; i++) await turn(i);
      const cpuMs = server.cpuMs() - before;
      checkAll(opened, warmUp + turns);
      post.close();
      return { µs: (cpuMs * 1000) / (readers * turns) };
    },
  };
}

/** As fast as it goes: batches in flight all the time, to some readers. */
export function saturated(readers: number, count: number, batchEvents: number): Scenario {
  return {
    name: `saturated, 1 run × ${readers} SSE readers, batches of ${batchEvents}`,
    measures: "deliveries",
    async run(server) {
      const post = server.poster(8);
      const { append, stream } = await server.open(post);
      const opened = await openReaders(server, stream, readers);
      const body = batchOf(batchEvents);
      const batches = Math.ceil(count * server.share);
      const warmUp = Math.ceil(batches / 4);
      const all = async (count: number, total: number): Promise<void> => {
        await inParallel(count, 8, () => post.post(append, body));
        await Promise.all(opened.map((reader) => reader.reached(total * batchEvents)));
      };
      await all(warmUp, warmUp);
      const before = server.cpuMs();
      const started = performance.now();
      await all(batches, warmUp + batches);
      const seconds = (performance.now() - started) / 1000;
      const cpuMs = server.cpuMs() - before;
      checkAll(opened, (warmUp + batches) * batchEvents);
      post.close();
      const deliveries = readers * batches * batchEvents;
      return { "M/s": deliveries / seconds / 1e6, "CPU µs each": (cpuMs * 1000) / deliveries };
    },
  };
}

const warmUpSeconds = 2;
/** More than any server here keeps in memory: what is measured is one that has run for a while. */
const filledEvents = 60_000;

/** From the append request to the reader's socket, under a steady load. */
export function latency(runs: number, readersPerRun: number, hertz: number, seconds: number): Scenario {
  return {
    name: `latency, ${runs} runs × ${readersPerRun} readers × ${hertz} Hz`,
    measures: "from append to delivery",
    async run(server) {
      const post = server.poster(64);
      let samples: number[] = [];
      const shared = server.name === "node:http";
      const targets: Target[] = [];
      await inParallel(runs, 16, async () => targets.push(await server.open(post)));
      const say = (i: number): Promise<string> =>
        post.post((targets[i % runs] as Target).append, `[${stamped()}]`);
      await inParallel(filledEvents, 64, say);
      const hear = (chunk: Buffer): void => {
        const now = performance.now();
        for (const sent of stampsIn(chunk)) samples.push(now - sent);
      };
      // The null server knows no runs: each of its streams hears everything, so it gets fewer of them.
      const streams = shared ? targets.slice(0, 1) : targets;
      const readers: Reader[] = [];
      await inParallel(streams.length * readersPerRun, 32, async (i) => {
        readers.push(await server.reader((streams[i % streams.length] as Target).stream, { hear }));
      });
      const load = async (seconds: number): Promise<void> => {
        const total = hertz * seconds * runs;
        const started = performance.now();
        const pending: Promise<unknown>[] = [];
        for (let sent = 0; sent < total; ) {
          await later();
          const due = Math.min(total, ((performance.now() - started) / 1000) * hertz * runs);
          for (; sent < due; sent++) pending.push(say(sent));
        }
        await Promise.all(pending);
      };
      // What queues up while a server that has just started compiles its own code is not what is measured.
      await load(warmUpSeconds);
      samples = [];
      await load(seconds);
      for (const reader of readers) reader.close();
      post.close();
      return { "p50 ms": percentile(samples, 0.5), "p99 ms": percentile(samples, 0.99) };
    },
  };
}

/** An event that says when it was sent. */
export function stamped(): string {
  const output = { note: String(performance.now()) };
  return JSON.stringify({ type: "tool.end", payload: { call_id: "c", ok: true, output } });
}

export function stampsIn(chunk: Buffer): readonly number[] {
  return [...chunk.toString("latin1").matchAll(/"note":"([0-9.]+)"/g)].map(([, sent]) => Number(sent));
}

/** About a millisecond, without keeping a core busy that the server needs. */
function later(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1));
}
