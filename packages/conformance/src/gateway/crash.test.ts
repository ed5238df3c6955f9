// kill -9 while producers append and readers follow: nothing that was acknowledged is lost or stored twice, no
// number is missing, and everyone goes on where they were.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as elapse } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Draft, type Event, endsRun } from "@runwire/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { cpuMsOf } from "../proc.js";
import {
  allEvents,
  append,
  call,
  control,
  createRun,
  lifecycle,
  reasoning,
  say,
  text,
  tryAppend,
} from "./calls.js";
import { chance, isSoak } from "./chance.js";
import { openReading, streamPath, type WireName, wireNames } from "./readers.js";
import { type ServerProcess, startServer } from "./server-process.js";
import { freshChildId, joined } from "./story.js";

const luck = chance("crash");
const rounds = isSoak ? 300 : 5;
const producers = 8;
/** What a log of this size may add to a start. */
const recoveryMsMax = isSoak ? 2000 : 1000;

const runwire = fileURLToPath(new URL("../../../cli/bin/runwire.js", import.meta.url));
const serve = [process.execPath, runwire, "serve"];

let folder: string;
let server: ServerProcess;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "runwire-crash-"));
  server = await startServer(serve, folder);
});

afterEach(async () => {
  await server.kill("SIGKILL");
  rmSync(folder, { recursive: true });
});

async function killAndRestart(): Promise<void> {
  await server.kill("SIGKILL");
  server = await startServer(serve, folder);
}

interface Producer {
  readonly id: string;
  /** The run it writes to, and the runs that its drafts are from. */
  readonly run_id: string;
  readonly from: readonly (string | undefined)[];
  sent: number;
  acked: number;
}

/** The next batch; every event says who wrote it and which one it is. */
function batchOf(producer: Producer): readonly Draft[] {
  return Array.from({ length: luck.whole(1, 50) }, () => {
    producer.sent += 1;
    const word = `<${producer.id}.${producer.sent}>`;
    const from = luck.pick(producer.from);
    const kind = luck.whole(0, 9);
    if (kind < 5) return text(word, from);
    if (kind < 8) return reasoning(word, from);
    return say("custom", { text: word }, from);
  });
}

/** What producers wrote; the server's own settled message repeats it. */
const wordsOf = (events: readonly Event[]): readonly string[] =>
  events
    .filter(({ type }) => type !== "message.settled")
    .flatMap(({ payload }) => ((payload as { text?: string }).text ?? "").match(/<[^>]+>/g) ?? []);

describe("a server that is killed", () => {
  it("loses nothing it acknowledged and stores nothing twice, for producers, readers and mirrored logs", {
    timeout: 60_000 + rounds * 15_000,
  }, async () => {
    const roots = [await createRun(server.url), await createRun(server.url)] as const;
    const [child, grandchild] = [freshChildId(), freshChildId()];
    await append(server.url, roots[0], say("child.spawn", { child_id: child }));
    await append(server.url, roots[0], say("child.spawn", { child_id: grandchild }, child));
    const runs = [...roots, child, grandchild];

    let running = true;
    let acks = 0;
    const all: Producer[] = Array.from({ length: producers }, (_, i) => {
      const run_id = runs[i % runs.length] as string;
      // Those of the first root write for its children too.
      const from = run_id === roots[0] ? [undefined, child, grandchild] : [undefined];
      return { id: `p${i}`, run_id, from, sent: 0, acked: 0 };
    });

    async function produce(producer: Producer): Promise<void> {
      while (running) {
        const seq = producer.sent + 1;
        const drafts = batchOf(producer);
        for (let answered = false; !answered; ) {
          try {
            const reply = await tryAppend(server.url, producer.run_id, drafts, {
              id: producer.id,
              epoch: 1,
              seq,
            });
            expect([reply.status, reply.body.last_producer_seq]).toEqual([200, producer.sent]);
            answered = true;
          } catch (error) {
            if ((error as Error).name === "AssertionError") throw error;
            // Killed under the request: whether it was stored is unknown, so the same is sent again.
            await elapse(10);
          }
        }
        producer.acked = producer.sent;
        acks += 1;
      }
    }

    async function follow(wire: WireName, run_id: string, dialect: "koder" | "runwire", detail: string) {
      const heard: Event[] = [];
      const cursor = dialect === "koder" ? "seq" : "pos";
      while (heard.at(-1) === undefined || !endsRun(heard.at(-1) as Event)) {
        const after = heard.at(-1)?.[cursor] ?? 0;
        try {
          const path = streamPath({ run_id, dialect, detail, after, backpressure: "lossless" });
          const reading = await openReading(wire, server.url, path);
          await reading.ended;
          heard.push(...reading.events);
        } catch {
          // Nobody listens yet.
          await elapse(10);
        }
      }
      return { heard, run_id, dialect, detail };
    }

    const readers = runs.flatMap((run_id) =>
      (["koder", "runwire"] as const).map((dialect, i) =>
        follow(luck.pick(wireNames), run_id, dialect, i === 0 ? "default" : luck.pick(["default", "full"])),
      ),
    );
    const producing = Promise.all(all.map(produce));
    for (let round = 0; round < rounds; round++) {
      // Somewhere in the work: after some more acknowledgements, and a moment that differs.
      const due = acks + luck.whole(1, luck.pick([5, 5, 60]));
      while (acks < due) await elapse(1);
      await elapse(luck.whole(0, 15));
      await killAndRestart();
    }
    running = false;
    await producing;
    for (const run_id of [grandchild, child, ...roots]) await append(server.url, run_id, lifecycle("done"));

    const logs = new Map<string, { full: readonly Event[]; shown: readonly Event[] }>();
    for (const run_id of runs) {
      const full = await allEvents(server.url, run_id);
      const shown = await allEvents(server.url, run_id, { detail: "default" });
      logs.set(run_id, { full, shown });
      for (const log of [full, shown]) {
        expect(log.map(({ pos }) => pos)).toEqual(log.map((_, i) => i + 1));
        expect(log.map(({ id }) => id)).toEqual(log.map(({ id }) => id).sort());
        expect(new Set(log.map(({ id }) => id)).size).toBe(log.length);
      }
      // Whatever was pending when the server died was shaped and sent: both views say the same.
      for (const type of ["text.delta", "reasoning.delta"]) {
        for (const by of [null, ...runs]) expect(joined(shown, type, by)).toBe(joined(full, type, by));
      }
    }
    for (const producer of all) {
      const { full } = logs.get(producer.run_id) ?? { full: [] };
      const own = wordsOf(full).filter((word) => word.startsWith(`<${producer.id}.`));
      expect(own).toEqual(Array.from({ length: producer.acked }, (_, i) => `<${producer.id}.${i + 1}>`));
    }
    // A mirror has the same events as the run itself, in the same order.
    for (const [above, below] of [
      [roots[0], child],
      [roots[0], grandchild],
      [child, grandchild],
    ] as const) {
      for (const view of ["full", "shown"] as const) {
        const own = logs.get(below)?.[view].filter((e) => e.child_id === null) ?? [];
        const mirrored = logs.get(above)?.[view].filter((e) => e.child_id === below) ?? [];
        expect(mirrored.map(({ id, payload }) => ({ id, payload }))).toEqual(
          own.map(({ id, payload }) => ({ id, payload })),
        );
      }
    }
    for (const { heard, run_id, dialect, detail } of await Promise.all(readers)) {
      expect(heard).toEqual(await allEvents(server.url, run_id, { dialect, detail }));
    }
    // A machine may be slow and busy; what the log adds to a start is the server's own.
    await killAndRestart();
    const [restartMs, startMs] = [cpuMsOf(server.pid), await emptyStart()];
    const stored = [...logs.values()].reduce((sum, { full }) => sum + full.length, 0);
    process.stdout.write(
      `crash: ${rounds} kills, ${acks} batches acknowledged, ${stored} stored events; ` +
        `restart ${restartMs} ms of processor time, an empty start ${startMs}\n`,
    );
    expect(restartMs - startMs).toBeLessThan(recoveryMsMax);
    expect(server.stderr).toBe("");
  });

  async function emptyStart(): Promise<number> {
    const folder = mkdtempSync(join(tmpdir(), "runwire-empty-"));
    const empty = await startServer(serve, folder);
    const startMs = cpuMsOf(empty.pid);
    await empty.kill("SIGKILL");
    rmSync(folder, { recursive: true });
    return startMs;
  }

  it("sends what was pending when it is back, though nobody writes any more", async () => {
    const run_id = await createRun(server.url);
    // The second delta waits for its tick; the server is killed before that.
    await append(server.url, run_id, text("first "));
    await append(server.url, run_id, text("second "), reasoning("thought "), text("third"));
    await killAndRestart();
    const reading = await openReading("sse", server.url, streamPath({ run_id }));
    await reading.until(
      ({ events }) =>
        joined(events, "text.delta") === "first second third" &&
        joined(events, "reasoning.delta") === "thought ",
    );
    reading.stop();
  });

  it("ends a run whose producer never comes back, with a reason", async () => {
    const run_id = await createRun(server.url, { lease_ms: 1000 });
    const child_id = freshChildId();
    await append(
      server.url,
      run_id,
      say("child.spawn", { child_id }),
      say("tool.start", { call_id: "c", tool: "t" }),
    );
    await append(server.url, run_id, text("never finished"));
    await killAndRestart();
    const reading = await openReading("sse", server.url, streamPath({ run_id }));
    await reading.ended;
    expect(joined(reading.events, "text.delta")).toBe("never finished");
    expect(reading.events.slice(-3)).toMatchObject([
      { type: "tool.end", child_id: null, payload: { ok: false } },
      { type: "run.lifecycle", child_id, payload: { state: "aborted", reason: "parent ended" } },
      { type: "run.lifecycle", child_id: null, payload: { state: "error" } },
    ]);
    expect(reading.events.at(-1)?.payload).toHaveProperty("reason", expect.stringContaining("producer lost"));
  });

  it("ends no run whose producer was there, when it was only stopped for longer than the lease [RW-LEASE-3]", async () => {
    const run_id = await createRun(server.url, { lease_ms: 2000 });
    server.kill("SIGSTOP");
    await elapse(3000);
    server.kill("SIGCONT");
    // Time to see what it has missed, before the producer is heard again.
    await call(server.url, "GET", "/readyz");
    await call(server.url, "GET", "/readyz");
    const renewed = await call(server.url, "POST", `/v1/agent/runs/${run_id}/heartbeat`);
    expect(renewed.body).toMatchObject({ state: "running" });
  });

  it("remembers answers, producers and erased runs", async () => {
    const run_id = await createRun(server.url);
    const gone = await createRun(server.url);
    await append(server.url, run_id, say("approval.requested", { approval_id: "appr_1" }));
    await control(server.url, run_id, "approvals/appr_1", { decision: "once" });
    await tryAppend(server.url, run_id, [text("x")], { id: "p", epoch: 4, seq: 1 });
    await call(server.url, "DELETE", `/v1/agent/runs/${gone}`);
    await killAndRestart();
    const answer = (decision: string) => control(server.url, run_id, "approvals/appr_1", { decision });
    expect([(await answer("once")).status, (await answer("deny")).status]).toEqual([200, 409]);
    expect((await tryAppend(server.url, run_id, [text("x")], { id: "p", epoch: 3, seq: 2 })).status).toBe(
      403,
    );
    const again = await tryAppend(server.url, run_id, [text("x")], { id: "p", epoch: 4, seq: 1 });
    expect([again.status, again.body.first_pos]).toEqual([200, null]);
    expect((await call(server.url, "GET", `/v1/agent/runs/${gone}`)).status).toBe(410);
  });
});
