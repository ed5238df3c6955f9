// The five acceptance tests that the agent stream protocol names, against a running server.

import { setTimeout as elapse } from "node:timers/promises";
import { coreTypes, type Draft, type Event, koder } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import { allEvents, append, createRun, lifecycle, reasoning, say, text } from "./calls.js";
import { chance } from "./chance.js";
import { openReading, readAll, streamPath, wireNames } from "./readers.js";
import { freshChildId, record, storyOfEveryType } from "./story.js";
import { underTest } from "./under-test.js";

const luck = chance("agent stream");

const server = underTest(startGateway);

describe("the agent stream protocol", () => {
  it("T1: every core event comes back as it was sent, and decodes to itself [RW-KODER-1]", async () => {
    const drafts = storyOfEveryType(luck.seed);
    const run_id = await record(server.url, drafts, 30);
    const sent = drafts.filter(({ type }) => coreTypes.has(type) && type !== "run.lifecycle");
    for (const wire of wireNames) {
      const { heard, events } = await readAll(wire, server.url, streamPath({ run_id, detail: "full" }));
      const said = events.filter(({ type }) => type !== "run.lifecycle");
      const own = said.filter((e) => !isInterrupted(e));
      expect(own.map(({ type, payload, child_id }) => ({ type, payload, child_id }))).toEqual(
        sent.map(({ type, payload, child_id = null }) => ({ type, payload, child_id })),
      );
      const decoder = koder.decoder();
      for (const [i, message] of heard.entries()) {
        const [draft] = decoder.decode(message);
        expect({ child_id: null, ...draft }).toEqual(events[i]);
      }
    }
  });

  it("T2: a reader sees from the numbers alone whether something is missing", async () => {
    const run_id = await record(server.url, storyOfEveryType(luck.seed + 1), 30);
    for (const detail of ["default", "full"]) {
      for (const wire of wireNames) {
        const { events } = await readAll(wire, server.url, streamPath({ run_id, detail }));
        expect(gaps(events)).toEqual([]);
        const missing = luck.whole(1, events.length - 2);
        expect(gaps(events.filter((_, i) => i !== missing))).toEqual([missing + 1]);
        // What is missing is fetched by its number.
        const repair = await allEvents(server.url, run_id, { dialect: "koder", detail });
        expect(repair[missing]).toEqual(events[missing]);
        expect(events.map(({ id }) => id)).toEqual(events.map(({ id }) => id).sort());
      }
    }
  });

  it("T3: a reader that reconnects with Last-Event-ID n gets n + 1 and all that follows", async () => {
    const run_id = await createRun(server.url);
    const drafts = storyOfEveryType(luck.seed + 2);
    await append(server.url, run_id, ...drafts.slice(0, 60));
    const first = await openReading("sse", server.url, streamPath({ run_id }));
    await first.until(({ events }) => events.length > 5);
    first.stop();
    const n = first.events.at(-1)?.seq ?? 0;
    expect(first.heard.at(-1)?.id).toBe(String(n));
    const rest = drafts.slice(60);
    const again = openReading("sse", server.url, streamPath({ run_id }), { "Last-Event-ID": String(n) });
    await append(server.url, run_id, ...rest);
    const second = await again;
    await second.ended;
    expect(second.events[0]?.seq).toBe(n + 1);
    const whole = await readAll("sse", server.url, streamPath({ run_id }));
    expect([...first.events, ...second.events]).toEqual(whole.events);
  });

  describe("T4: a thousand deltas in three seconds are at most ten events in any second, and the same text", () => {
    const tools = ["call_a", "call_b", "call_c"];
    const shapes: { readonly [name: string]: (i: number) => Draft } = {
      "text alone": (i) => text(`t${i} `),
      "text and reasoning by turns": (i) => (i % 2 ? text(`t${i} `) : reasoning(`r${i} `)),
      "three tools that stream text beside it": (i) =>
        i % 4 === 3
          ? text(`t${i} `)
          : say("text.delta", { text: `${tools[i % 4]}.${i} `, call_id: tools[i % 4] as string }),
      "tool output beside it": (i) =>
        i % 2 ? text(`t${i} `) : say("tool.output", { text: `o${i} `, call_id: tools[0] as string }),
    };

    // They run side by side: each needs its three seconds.
    it.concurrent.each(Object.keys(shapes))("%s", async (name) => {
      const shape = shapes[name] as (i: number) => Draft;
      const drafts = Array.from({ length: 1000 }, (_, i) => shape(i));
      const run_id = await createRun(server.url);
      const arrivals: { readonly e: Event; readonly atMs: number }[] = [];
      const reading = await openReading("sse", server.url, streamPath({ run_id }));
      let seen = 0;
      const watching = reading.until(({ events }) => {
        for (; seen < events.length; seen++)
          arrivals.push({ e: events[seen] as Event, atMs: performance.now() });
        return events.at(-1)?.type === "run.lifecycle" && events.length > 1;
      });
      // The pace is the test's own subject: 1000 deltas, spread over 3 s.
      const beganMs = performance.now();
      for (let i = 0; i < drafts.length; i += 10) {
        await append(server.url, run_id, ...drafts.slice(i, i + 10));
        const dueMs = beganMs + (3000 * (i + 10)) / drafts.length;
        await elapse(Math.max(0, dueMs - performance.now()));
      }
      // Whatever is still pending goes out by itself: no control event pushes it.
      const groups = [...new Map(drafts.map((draft) => [keyOf(draft), draft])).values()];
      const isCaughtUp = async () => {
        const shown = await allEvents(server.url, run_id, { detail: "default" });
        return groups.every((draft) => joinedOf(shown, draft) === joinedOf(drafts, draft));
      };
      for (const untilMs = performance.now() + 150 * groups.length + 2000; !(await isCaughtUp()); ) {
        expect(performance.now()).toBeLessThan(untilMs);
        await elapse(20);
      }
      await append(server.url, run_id, lifecycle("done"));
      await watching;

      const deltas = arrivals.filter(({ e }) => e.type === "text.delta" || e.type === "reasoning.delta");
      const stored = deltas.map(({ e }) => Date.parse(e.ts));
      for (const [i, ms] of stored.entries()) {
        expect(stored.filter((other) => other >= ms && other < ms + 1000).length).toBeLessThanOrEqual(10);
        if (i > 0) expect(ms - (stored[i - 1] as number)).toBeGreaterThanOrEqual(100);
      }
      // On the wire too, give or take what a busy machine delays: eleven never come within 900 ms.
      for (let i = 10; i < deltas.length; i++) {
        expect((deltas[i]?.atMs ?? 0) - (deltas[i - 10]?.atMs ?? 0)).toBeGreaterThan(800);
      }
      // Not fewer than the cap allows, by far: a reader sees text as it comes.
      expect(deltas.length).toBeGreaterThan(20);
      const full = await allEvents(server.url, run_id);
      for (const draft of groups) {
        expect(joinedOf(full, draft)).toBe(joinedOf(drafts, draft));
        if (draft.type !== "tool.output") expect(joinedOf(reading.events, draft)).toBe(joinedOf(full, draft));
      }
    });
  });

  it("T5: events of several children keep their order in the parent's sequence", async () => {
    const root = await createRun(server.url);
    const children = [freshChildId(), freshChildId(), freshChildId()];
    await append(
      server.url,
      root,
      ...children.map((child_id) => say("child.spawn", { child_id, prompt: "go" })),
    );
    const grandchild = freshChildId();
    await append(server.url, root, say("child.spawn", { child_id: grandchild }, children[0]));
    const producers = [...children, grandchild];
    // Each child is written by its own producer, at its own pace, to its own run.
    await Promise.all(
      producers.map(async (child_id, n) => {
        for (let i = 0; i < 25; i++) {
          const words = [text(`${n}.${i} `), reasoning(`${n}-${i} `)];
          const step = say("step.boundary", { step_index: i, step_kind: "text-only" });
          await append(server.url, child_id, ...(i % 3 ? words : [...words, step]));
        }
      }),
    );
    await append(server.url, grandchild, lifecycle("done"));
    for (const child_id of children) await append(server.url, child_id, lifecycle("done"));
    await append(server.url, root, lifecycle("done"));
    for (const detail of ["default", "full"]) {
      const parent = (await readAll("sse", server.url, streamPath({ run_id: root, detail }))).events;
      expect(gaps(parent)).toEqual([]);
      expect(parent.every(({ run_id }) => run_id === root)).toBe(true);
      for (const child_id of producers) {
        const own = (await readAll("sse", server.url, streamPath({ run_id: child_id, detail }))).events;
        const direct = own.filter((e) => e.child_id === null);
        const mirrored = parent.filter((e) => e.child_id === child_id);
        expect(mirrored.map(({ id, type, payload }) => ({ id, type, payload }))).toEqual(
          direct.map(({ id, type, payload }) => ({ id, type, payload })),
        );
        expect(gaps(own)).toEqual([]);
      }
      const inMiddle = (
        await readAll("sse", server.url, streamPath({ run_id: children[0] as string, detail }))
      ).events;
      expect(inMiddle.filter((e) => e.child_id === grandchild).map(({ id }) => id)).toEqual(
        parent.filter((e) => e.child_id === grandchild).map(({ id }) => id),
      );
      // Who spawned whom is told by the envelope of each spawn.
      const spawns = parent.filter((e) => e.type === "child.spawn");
      expect(spawns.map((e) => [e.child_id, (e.payload as { child_id: string }).child_id])).toEqual([
        ...children.map((child_id) => [null, child_id]),
        [children[0], grandchild],
      ]);
    }
  });
});

function gaps(events: readonly Event[]): readonly number[] {
  const seen = new Set(events.map(({ seq }) => seq));
  return Array.from({ length: events.at(-1)?.seq ?? 0 }, (_, i) => i + 1).filter((seq) => !seen.has(seq));
}

/** What the server itself wrote when a run ended with open calls. */
function isInterrupted(e: Event): boolean {
  return e.type === "tool.end" && JSON.stringify(e.payload).includes("KAI-RUN-TOOL-0001");
}

function keyOf({ type, payload }: Pick<Draft, "type" | "payload">): string {
  return `${type} ${(payload as { call_id?: string }).call_id ?? ""}`;
}

/** All text of one delta's group. */
function joinedOf(events: readonly Pick<Draft, "type" | "payload">[], of: Draft): string {
  const same = events.filter((e) => keyOf(e) === keyOf(of));
  return same.map(({ payload }) => (payload as { text: string }).text).join("");
}
