// What it costs to come late.

import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { inParallel, type Poster, type Reader } from "../load.js";
import type { Server, Target } from "../process.js";
import { batchOf, percentile, type Scenario } from "./scenario.js";

const batchEvents = 500;

async function record(server: Server, post: Poster, events: number): Promise<Target> {
  const target = await server.open(post);
  await inParallel(events / batchEvents, 4, () => post.post(target.append, batchOf(batchEvents)));
  return target;
}

/** A long log read from its start: the first reader finds nothing encoded, the second finds all of it. */
export function replay(events: number): Scenario {
  const rate = async (server: Server, path: string): Promise<number> => {
    const started = performance.now();
    const reader = await server.reader(path, { counts: false });
    await reader.ended;
    if (reader.bytes < 1e5) throw new Error(`only ${reader.bytes} bytes came from ${server.name}`);
    return reader.bytes / 1e6 / ((performance.now() - started) / 1000);
  };
  return {
    name: `replay of ${events} events`,
    measures: "bytes read",
    async run(server) {
      const isOurs = server.name === "runwire";
      const post = server.poster(4);
      const ended = async (count: number): Promise<string> => {
        if (!isOurs) return "/bytes?mb=32";
        const { append, stream } = await record(server, post, count);
        await post.post(append, '[{"type":"run.lifecycle","payload":{"state":"done"}}]');
        await settled(server);
        return stream;
      };
      // Another run first: cold is the log, not the code that reads it.
      await rate(server, await ended(events / 10));
      const stream = await ended(events);
      const cold = await rate(server, stream);
      const warm = await rate(server, stream);
      if (isOurs) {
        const counted = await server.reader(stream);
        await counted.ended;
        if (counted.events !== events) throw new Error(`${counted.events} of ${events} events`);
      }
      post.close();
      return { "cold MB/s": cold, "warm MB/s": warm };
    },
  };
}

/** What has ended is packed in the background; whoever comes late comes after that. */
async function settled(server: Server): Promise<void> {
  let last = Number.NaN;
  for (let looks = 0; looks < 100; looks++) {
    const text = await (await fetch(new URL("/metrics", server.url))).text();
    const rows = Number(/^runwire_hot_events (\S+)$/m.exec(text)?.[1]);
    if (rows === last) return;
    last = rows;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

const liveMs = 3000;

/** Many come back at once, each for the whole log, while another run goes on. */
export function storm(readers: number, events: number): Scenario {
  return {
    name: `reconnect storm, ${readers} readers × ${events} events`,
    measures: "until all have caught up",
    async run(server) {
      const post = server.poster(4);
      const { stream } = await record(server, post, events);
      // Two runs are one thing to a server that knows no runs.
      const live = server.name === "runwire" ? await liveRun(server, post) : undefined;
      const quiet = (await live?.during(new Promise((resolve) => setTimeout(resolve, liveMs)))) ?? [];
      const opened: Reader[] = [];
      const come = async (): Promise<number> => {
        const started = performance.now();
        await inParallel(readers, 200, async () => {
          const reader = await server.reader(stream);
          opened.push(reader);
          await reader.reached(events);
        });
        return performance.now() - started;
      };
      let ms = 0;
      const coming = come().then((took) => {
        ms = took;
      });
      const busy = await (live?.during(coming) ?? coming.then(() => []));
      for (const reader of opened) {
        if (reader.events !== events) throw new Error(`a reader got ${reader.events} of ${events} events`);
        reader.close();
      }
      live?.close();
      post.close();
      const before = { "live p99 before, ms": percentile(quiet, 0.99) };
      return { s: ms / 1000, ...(live === undefined ? {} : before), "live p99, ms": percentile(busy, 0.99) };
    },
  };
}

/** How old the events of another run are when they arrive, while something happens; see live-thread.ts. */
async function liveRun(
  server: Server,
  post: Poster,
): Promise<{ during(what: Promise<unknown>): Promise<readonly number[]>; close(): void }> {
  const workerData = { base: server.url.href, ...(await server.open(post)) };
  const thread = new Worker(new URL("../live-thread.js", import.meta.url), { workerData });
  const [heard] = (await once(thread, "message")) as unknown[];
  if (heard !== "ready") throw new Error("the live run did not begin");
  return {
    async during(what) {
      thread.postMessage("begin");
      await what;
      thread.postMessage("end");
      const [samples] = (await once(thread, "message")) as [readonly number[]];
      return samples;
    },
    close: () => void thread.terminate(),
  };
}
