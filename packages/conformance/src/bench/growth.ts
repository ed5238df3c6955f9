// Whether what one event costs stays the same while everything around it grows. Each row is a ratio to its first point.

import { inParallel, type Poster, type Reader } from "./load.js";
import { createRun, type Server, type Target } from "./process.js";
import { batchOf, toolEnd } from "./scenarios/scenario.js";

export interface Growth {
  readonly name: string;
  readonly measures: string;
  readonly points: readonly number[];
  /** One figure for each point, from one server that grows. */
  run(server: Server, points: readonly number[]): Promise<readonly number[]>;
}

/** CPU per single-event append while so many runs live. */
export function liveRunsGrowth(points: readonly number[], appends: number): Growth {
  return {
    name: "live runs",
    measures: "CPU µs per appended event",
    points,
    async run(server, points) {
      const post = server.poster(16);
      const targets: Target[] = [];
      const figures: number[] = [];
      for (const runs of points) {
        await inParallel(runs - targets.length, 16, async () => targets.push(await server.open(post)));
        const append = (i: number): Promise<string> =>
          post.post((targets[i % runs] as Target).append, `[${toolEnd(i)}]`);
        figures.push(await cpuPer(server, appends, (count) => inParallel(count, 16, append)));
      }
      post.close();
      return figures;
    },
  };
}

/** CPU per delivery while so many read: that of the append, measured without readers, is taken off. */
export function readersGrowth(points: readonly number[], deliveries: number): Growth {
  return {
    name: "readers of a run",
    measures: "CPU µs per delivery",
    points,
    async run(server, points) {
      const post = server.poster(1);
      const { append, stream } = await server.open(post);
      let sent = 0;
      const turn = async (readers: readonly Reader[]): Promise<void> => {
        await post.post(append, `[${toolEnd(sent)}]`);
        sent += 1;
        await Promise.all(readers.map((reader) => reader.reached(sent)));
      };
      const turns = async (count: number, readers: readonly Reader[]): Promise<void> => {
        for (let i = 0; i < count; i++) await turn(readers);
      };
      const alone = await cpuPer(server, 3000, (count) => turns(count, []));
      const readers: Reader[] = [];
      const figures: number[] = [];
      for (const wanted of points) {
        await inParallel(wanted - readers.length, 50, async () => readers.push(await server.reader(stream)));
        await Promise.all(readers.map((reader) => reader.reached(sent)));
        const count = Math.min(3000, Math.max(8, Math.ceil(deliveries / wanted)));
        figures.push(((await cpuPer(server, count, (some) => turns(some, readers))) - alone) / wanted);
      }
      for (const reader of readers) reader.close();
      post.close();
      return figures;
    },
  };
}

/** CPU per event, appended and delivered to ten, after so many have gone before in the same run. */
export function lengthGrowth(points: readonly number[], appends: number): Growth {
  return {
    name: "events in the run",
    measures: "CPU µs per event to 10 readers",
    points,
    async run(server, points) {
      const post = server.poster(1);
      const { append, stream } = await server.open(post);
      const figures: number[] = [];
      let sent = 0;
      for (const length of points) {
        for (; sent < length; sent += batchEvents) await post.post(append, batchOf(batchEvents));
        const after = sent + 2;
        const readers = await Promise.all(
          Array.from({ length: 10 }, () => server.reader(stream.replace(/after=\d+/, `after=${after}`))),
        );
        let heard = 0;
        const turns = async (count: number): Promise<void> => {
          for (let i = 0; i < count; i++) {
            await post.post(append, `[${toolEnd(i)}]`);
            heard += 1;
            await Promise.all(readers.map((reader) => reader.reached(heard)));
          }
        };
        figures.push(await cpuPer(server, appends, turns));
        sent += heard;
        for (const reader of readers) reader.close();
      }
      post.close();
      return figures;
    },
  };
}

const batchEvents = 500;

/** CPU per event that a child so far down says: it is in the log of each above it. */
export function depthGrowth(points: readonly number[], appends: number): Growth {
  return {
    name: "levels of children",
    measures: "CPU µs per appended event",
    points,
    async run(server, points) {
      const post = server.poster(16);
      let run = await createRun(post);
      let depth = 0;
      const figures: number[] = [];
      for (const wanted of points) {
        for (; depth < wanted; depth++) run = await spawn(post, run);
        const append = (i: number): Promise<string> =>
          post.post(`/v1/agent/runs/${run}/events`, `[${toolEnd(i)}]`);
        figures.push(await cpuPer(server, appends, (count) => inParallel(count, 16, append)));
      }
      post.close();
      return figures;
    },
  };
}

/** CPU per page of runs that failed, while so many that are done have come after them. */
export function listGrowth(points: readonly number[], pages: number): Growth {
  return {
    name: "runs that are kept",
    measures: "CPU µs per page of 20 that failed",
    points,
    async run(server, points) {
      const post = server.poster(16);
      const keep = async (state: "done" | "error"): Promise<void> => {
        const run = await createRun(post);
        await post.post(
          `/v1/agent/runs/${run}/events`,
          JSON.stringify([{ type: "run.lifecycle", payload: { state } }]),
        );
      };
      const list = async (): Promise<void> => {
        const answer = await fetch(new URL("/v1/agent/runs?state=error&limit=20", server.url));
        const { runs } = (await answer.json()) as { runs: readonly unknown[] };
        if (runs.length !== 20) throw new Error(`${runs.length} runs failed, and not 20`);
      };
      await inParallel(20, 16, () => keep("error"));
      let kept = 20;
      const figures: number[] = [];
      for (const wanted of points) {
        await inParallel(wanted - kept, 16, () => keep("done"));
        kept = Math.max(kept, wanted);
        figures.push(await cpuPer(server, pages, (count) => inParallel(count, 1, list)));
      }
      post.close();
      return figures;
    },
  };
}

async function spawn(post: Poster, parent: string): Promise<string> {
  const text = await post.post(`/v1/agent/runs/${parent}/children`, '{"prompt":"bench"}');
  return (JSON.parse(text) as { run_id: string }).run_id;
}

/** CPU µs for each of `count`, after a quarter as many that are not counted. */
async function cpuPer(
  server: Server,
  count: number,
  act: (count: number) => Promise<unknown>,
): Promise<number> {
  await act(Math.ceil(count / 4));
  const before = server.cpuMs();
  await act(count);
  return ((server.cpuMs() - before) * 1000) / count;
}
