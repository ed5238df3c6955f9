// A server under load for long, with readers that come, go, come back and stand still, and one run that lives all the
// while: what it holds must not grow with what it has done. Prints a line a minute, and at the end how the last quarter
// compares to the second.

import { connect } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import type { Reader } from "./load.js";
import { type Server, startRunwire, type Target } from "./process.js";
import { toolEnd, toolStart } from "./scenarios/scenario.js";

interface Sample {
  readonly heapMb: number;
  /** Buffers. */
  readonly outsideMb: number;
  readonly rssMb: number;
  readonly files: number;
}

const producers = 4;
const eventsPerRun = 200;
const readersPerRun = 5;
const pauseMs = 15;
const sampleMs = 2000;
const chunkEvents = 5;
const chunkEveryMs = 50;

export async function steady(minutes: number, say: (line: string) => void): Promise<string> {
  const server = await startRunwire();
  const endMs = performance.now() + minutes * 60_000;
  const done = { runs: 0, events: 0, readers: 0 };
  const samples: Sample[] = [];
  const isOver = (): boolean => performance.now() >= endMs;

  const sampling = (async () => {
    for (let i = 1; !isOver(); i++) {
      await wait(sampleMs);
      const sample = await look(server);
      samples.push(sample);
      if ((i * sampleMs) % 60_000 === 0)
        say(
          `${(i * sampleMs) / 60_000} min: ${done.runs} runs, ${done.events} events, ${done.readers} readers; ` +
            `heap ${sample.heapMb.toFixed(1)} MB, outside ${sample.outsideMb.toFixed(1)} MB, memory ${sample.rssMb.toFixed(0)} MB, ${sample.files} files`,
        );
    }
  })();
  const working = Array.from({ length: producers }, async () => {
    while (!isOver()) await oneRun(server, done);
  });
  await Promise.all([sampling, longRun(server, done, isOver), ...working]);
  await server.stop();

  // The first quarter is the server's own growing up.
  const quarter = Math.floor(samples.length / 4);
  const [second, last] = [samples.slice(quarter, 2 * quarter), samples.slice(-quarter)];
  const rows = (["heapMb", "outsideMb", "rssMb", "files"] as const).map((member) => {
    const [was, is] = [second, last].map((some) => floorOf(some, member)) as [number, number];
    return `| ${member} | ${was.toFixed(1)} | ${is.toFixed(1)} | ${(is / was).toFixed(3)} |`;
  });
  const { runs, events, readers } = done;
  return [
    `${minutes} minutes: ${runs} runs, ${events} events, ${readers} readers`,
    "| floor of | second quarter | last quarter | ratio |",
    "|---|---|---|---|",
    ...rows,
  ].join("\n");
}

/** What is left after garbage: a tenth of all looks found less. */
function floorOf(samples: readonly Sample[], member: keyof Sample): number {
  const sorted = samples.map((sample) => sample[member]).toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 10)] ?? Number.NaN;
}

async function look(server: Server): Promise<Sample> {
  const text = await (await fetch(new URL("/metrics", server.url))).text();
  const mbOf = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]) / 1e6;
  const heapMb = mbOf("nodejs_heap_size_used_bytes");
  return {
    heapMb,
    outsideMb: mbOf("nodejs_external_memory_bytes"),
    rssMb: server.rssBytes() / 1e6,
    files: server.files(),
  };
}

/** A run from its first event to its last, with readers of every habit. */
async function oneRun(
  server: Server,
  done: { runs: number; events: number; readers: number },
): Promise<void> {
  const post = server.poster(1);
  const target = await server.open(post);
  const readers = await Promise.all(
    Array.from({ length: readersPerRun }, () => server.reader(target.stream)),
  );
  const stalled = stall(server, target);
  for (let i = 0; i < eventsPerRun; i += 2) {
    await post.post(target.append, `[${toolStart(i)},${toolEnd(i)}]`);
    done.events += 2;
    if (i % 20 === 0) await comeAndGo(server, target, readers, i);
    await wait(pauseMs);
  }
  await post.post(target.append, '[{"type":"run.lifecycle","payload":{"state":"done"}}]');
  await Promise.all(readers.map((reader) => reader.ended));
  stalled.destroy();
  post.close();
  done.runs += 1;
  done.events += 3;
  done.readers += readersPerRun + 1 + eventsPerRun / 20;
}

/** One run from the first minute to the last, written over one connection and read over another. */
async function longRun(
  server: Server,
  done: { events: number; readers: number },
  isOver: () => boolean,
): Promise<void> {
  const post = server.poster(1);
  const target = await server.open(post);
  const reader = await server.reader(target.stream);
  const session = server.session(target.append);
  const chunk = Array.from({ length: chunkEvents }, (_, i) => toolEnd(i));
  let sent = 0;
  while (!isOver()) {
    session.send(chunk);
    sent += chunkEvents;
    await session.reached(sent);
    done.events += chunkEvents;
    await wait(chunkEveryMs);
  }
  await reader.reached(sent);
  session.close();
  reader.close();
  post.close();
  done.readers += 1;
}

/** The oldest reader leaves, and comes back where it stood. */
async function comeAndGo(
  server: Server,
  { stream }: Target,
  readers: Reader[],
  after: number,
): Promise<void> {
  readers.shift()?.close();
  readers.push(await server.reader(stream.replace(/after=\d+/, `after=${after + 1}`)));
}

/** Reads its head, and then nothing. */
function stall({ url }: Server, { stream }: Target): ReturnType<typeof connect> {
  const socket = connect(Number(url.port), url.hostname);
  socket.on("error", () => socket.destroy());
  socket.write(`GET ${stream} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`);
  socket.once("data", () => socket.pause());
  return socket;
}
