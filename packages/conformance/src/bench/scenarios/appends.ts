// What it costs to be told that something is safe.

import { inParallel } from "../load.js";
import type { Target } from "../process.js";
import { batchOf, type Scenario, toolEnd, toolStart } from "./scenario.js";

/** Single events over many connections. */
export function posts(connections: number, count: number): Scenario {
  return {
    name: `single-event POSTs, ${connections} connections`,
    measures: "acknowledged events",
    async run(server) {
      const asked = Math.ceil(count * server.share);
      const post = server.poster(connections);
      const { append } = await server.open(post);
      const body = `[${toolStart(1)}]`;
      // A server that has just started compiles its own code; what is measured is one that runs.
      await inParallel(asked / 4, connections, () => post.post(append, body));
      const cpuBefore = server.cpuMs();
      const started = performance.now();
      await inParallel(asked, connections, () => post.post(append, body));
      const seconds = (performance.now() - started) / 1000;
      const cpuMs = server.cpuMs() - cpuBefore;
      post.close();
      return { "events/s": asked / seconds, "CPU µs each": (cpuMs * 1000) / asked };
    },
  };
}

/** Events spread over live runs, in batches. */
export function liveRuns(runs: number, batches: number, batchEvents: number): Scenario {
  return {
    name: `batches of ${batchEvents}, ${runs} live runs`,
    measures: "acknowledged events",
    async run(server) {
      const post = server.poster(16);
      const targets: Target[] = [];
      await inParallel(runs, 16, async () => targets.push(await server.open(post)));
      const body = batchOf(batchEvents);
      const toNext = (i: number): Promise<string> => post.post((targets[i % runs] as Target).append, body);
      await inParallel(batches / 4, 16, toNext);
      const cpuBefore = server.cpuMs();
      const started = performance.now();
      await inParallel(batches, 16, toNext);
      const seconds = (performance.now() - started) / 1000;
      const cpuMs = server.cpuMs() - cpuBefore;
      post.close();
      const events = batches * batchEvents;
      return { "events/s": events / seconds, "CPU µs each": (cpuMs * 1000) / events };
    },
  };
}

const inFlightMax = 32;

/** One producer that never waits for an answer before it goes on, but is never far ahead of what is safe. */
export function appendSession(chunks: number, chunkEvents: number): Scenario {
  return {
    name: `append session, ${chunkEvents} events a chunk`,
    measures: "acknowledged events",
    async run(server) {
      const post = server.poster(1);
      const { append } = await server.open(post);
      const session = server.session(append);
      const chunk = Array.from({ length: chunkEvents }, (_, i) => toolEnd(i));
      let sent = 0;
      const send = async (until: number): Promise<void> => {
        while (sent < until) {
          session.send(chunk);
          sent += 1;
          await session.reached((sent - inFlightMax) * chunkEvents);
        }
        await session.reached(sent * chunkEvents);
      };
      const warmUp = Math.ceil(chunks / 4);
      await send(warmUp);
      const cpuBefore = server.cpuMs();
      const started = performance.now();
      await send(warmUp + chunks);
      const seconds = (performance.now() - started) / 1000;
      const cpuMs = server.cpuMs() - cpuBefore;
      if (session.acked !== sent * chunkEvents) throw new Error(`${session.acked} events were acknowledged`);
      session.close();
      post.close();
      const events = chunks * chunkEvents;
      return { "events/s": events / seconds, "CPU µs each": (cpuMs * 1000) / events };
    },
  };
}
