// Those who write runs: each tells a story of its own, dies now and then, and goes on where the server says that it had
// stopped. Every draft is numbered, so that the log shows whether it was stored once.

import { type HeaderFields, openProducer } from "@runwire/client";
import { type Draft, type Event, isFinal, RunwireError } from "@runwire/protocol";
import { expect } from "vitest";
import type { World } from "./world.js";

export interface Production {
  readonly tenant: string;
  readonly run_id: string;
  readonly drafts: readonly Draft[];
  /** How many the server has said to have stored. */
  acknowledged: number;
  /** Whether somebody else ended the run. */
  isOver: boolean;
  /** Which of the run's events are its own: they are marked with it, and numbered. */
  readonly by: string;
  /** Up to where it writes before it is never heard of again. */
  readonly goneAfter: number;
  /** How long it says nothing after each word; by the dice where that is not told. */
  readonly everyMs?: number;
  /** When it last had something to say that was stored since. */
  contactMs: number;
  readonly lease_ms: number;
}

/** How many of its own a log has, which are numbered without a gap. */
function stored({ by }: Pick<Production, "by">, log: readonly Event[], from = 0): readonly number[] {
  return log.slice(from).flatMap(({ payload }) => {
    const { n, by: whose = "p" } = payload as { n?: unknown; by?: unknown };
    return typeof n === "number" && whose === by ? [n] : [];
  });
}

/** It has ended, or was erased. */
const isOver = ({ code, row }: RunwireError): boolean => code === "KAI-RUN-ENDED-0001" || row.status === 410;

/** Batches that are sent this way, by the number that each ends with: an append is stored whole, or not at all. */
function batchesThrough({ endpoint }: World): {
  readonly fetch: typeof fetch;
  readonly ends: ReadonlySet<number>;
} {
  const ends = new Set([0]);
  return {
    ends,
    fetch(url, init) {
      const { "producer-seq": first } = (init?.headers ?? {}) as HeaderFields;
      if (first !== undefined)
        ends.add(Number(first) - 1 + (JSON.parse(String(init?.body)) as unknown[]).length);
      return (endpoint.fetch as typeof fetch)(url, init);
    },
  };
}

/** What was acknowledged is in the log, once and in order; and a producer that is there is not taken for lost. */
export function expectAlways(world: World, made: Production, ends?: ReadonlySet<number>): void {
  let looked = 0;
  let count = 0;
  world.always(() => {
    const log = world.audit.log(made, "full");
    if (log.length === 0) return;
    for (const n of stored(made, log, looked)) {
      count += 1;
      if (n !== count) throw new Error(`${made.run_id}: ${made.by} ${n} is stored, and ${count} was next`);
    }
    const endsAt = (n: number): boolean => ends?.has(n) ?? true;
    const isWhole = endsAt(count) || (count === made.drafts.length - 1 && endsAt(count + 1));
    if (!isWhole) throw new Error(`${made.run_id}: ${count} of ${made.by} are stored, a part of a batch`);
    if (count < Math.min(made.acknowledged, made.drafts.length - 1))
      throw new Error(`${made.run_id}: ${made.acknowledged} acknowledged, ${count} are stored`);
    const last = looked < log.length ? log.at(-1) : undefined;
    looked = log.length;
    const { reason } = (last?.payload ?? {}) as { reason?: unknown };
    if (last?.type !== "run.lifecycle" || !String(reason).startsWith("producer lost")) return;
    const silentMs = world.time.ms - made.contactMs;
    if (silentMs < made.lease_ms)
      throw new Error(`${made.run_id} was lost ${silentMs} ms after its producer wrote to it`);
  });
}

/** What tells a draft apart: its number, and whose it is. */
export function own({ tenant }: World, before: readonly Draft[]): object {
  return { n: before.length + 1, whose: tenant };
}

/** What a run says; approvals are asked for under ids that people know. */
export function story(world: World, length: number, approvals: readonly string[]): readonly Draft[] {
  const drafts: Draft[] = [];
  const say = (type: string, payload: object): void => {
    drafts.push({ type, payload: { ...payload, ...own(world, drafts) } } as unknown as Draft);
  };
  let calls = 0;
  const asking = [...approvals];
  while (drafts.length < length) {
    switch (world.whole(0, 6)) {
      case 0:
      case 1:
        for (let i = world.whole(1, 12); i > 0; i--) say("text.delta", { text: `t${drafts.length} ` });
        break;
      case 2:
        for (let i = world.whole(1, 6); i > 0; i--) say("reasoning.delta", { text: `r${drafts.length} ` });
        break;
      case 3: {
        calls += 1;
        const call_id = `call_${calls}`;
        say("tool.start", { call_id, tool: "look", input: { calls } });
        if (world.whole(0, 1) === 1) say("text.delta", { text: "found", call_id });
        say("tool.end", { call_id, ok: true, output: "x".repeat(world.whole(0, 300)) });
        break;
      }
      case 4:
        say("step.boundary", { step_index: calls, step_kind: "tool-roundtrip" });
        break;
      case 5: {
        const approval_id = asking.shift();
        if (approval_id !== undefined) say("approval.requested", { approval_id });
        break;
      }
      default:
        say("usage", { input_tokens: 1, output_tokens: 1 });
    }
  }
  for (const approval_id of asking) say("approval.requested", { approval_id });
  drafts.push({ type: "run.lifecycle", payload: { state: "done" } });
  return drafts;
}

const leaseMs = 300_000;
/** In which every tenant of a shared server has its runs. */
export const sharedSession = "ses_1";

type Pace = Partial<Pick<Production, "lease_ms" | "goneAfter" | "everyMs">>;

export async function produce(
  world: World,
  name: string,
  drafts: readonly Draft[],
  pace: Pace = {},
): Promise<Production> {
  return write(world, name, await beginRun(world, name, drafts, pace));
}

/** A run, and what is to be said in it; nobody says it yet. */
export async function beginRun(
  world: World,
  name: string,
  drafts: readonly Draft[],
  { lease_ms = leaseMs, goneAfter = Number.POSITIVE_INFINITY, ...pace }: Pace = {},
): Promise<Production> {
  const contactMs = world.time.ms;
  const { tenant } = world;
  // Ids are a tenant's own, those of sessions too.
  const session = world.tenants.length === 0 ? {} : { session_id: sharedSession };
  const asked = { prompt: name, producer: "external" as const, lease_ms, ...session };
  const { run_id } = await world.persistently(() => world.api.createRun(asked, `make-${name}`));
  world.roots.push({ tenant, run_id });
  const made = { tenant, run_id, drafts, by: "p", lease_ms, goneAfter, contactMs, ...pace };
  return { ...made, acknowledged: 0, isOver: false };
}

/** Another one, for a run that is there. */
export function write(
  world: World,
  name: string,
  given: Omit<Production, "tenant" | "acknowledged" | "isOver">,
): Production {
  const { api } = world;
  const { run_id, drafts, by, lease_ms, goneAfter } = given;
  const batches = batchesThrough(world);
  const made: Production = { ...given, tenant: world.tenant, acknowledged: 0, isOver: false };
  expectAlways(world, made, batches.ends);
  world.begin(`producer of ${name}`, writeAll);
  return made;

  async function writeAll(): Promise<void> {
    while (!made.isOver && made.acknowledged < drafts.length) {
      const life = new AbortController();
      try {
        const { last_producer_seq } = await world.persistently(() => api.producer(run_id, by));
        const diesAt =
          world.whole(0, 3) === 0 ? world.whole(last_producer_seq, drafts.length) : drafts.length + 1;
        const producer = openProducer({
          ...world.endpoint,
          fetch: batches.fetch,
          run_id,
          producer_id: by,
          after: last_producer_seq,
          lease_ms,
          signal: life.signal,
        });
        for (let at = last_producer_seq; at < drafts.length; at++) {
          if (at >= goneAfter) {
            await producer.flush();
            return;
          }
          const saidMs = world.time.ms;
          if (at === diesAt) life.abort(new Error("this producer dies"));
          await producer.push(drafts[at] as Draft);
          if (given.everyMs !== undefined) await world.sleep(given.everyMs);
          else if (world.whole(0, 3) === 0) await world.sleep(world.whole(0, 400));
          if (world.whole(0, 9) > 0) continue;
          await producer.flush();
          made.acknowledged = Math.max(made.acknowledged, at + 1);
          made.contactMs = saidMs;
        }
        await producer.close();
        made.acknowledged = drafts.length;
      } catch (error) {
        if (life.signal.aborted) await world.sleep(world.whole(0, 3000));
        else if (error instanceof RunwireError && isOver(error)) made.isOver = true;
        else if (error instanceof RunwireError && error.code === "KAI-RUN-STATE-0001") await world.sleep(500);
        // What its life before had still on the way was stored since it asked how far that had come: it asks again.
        else if (error instanceof RunwireError && error.code === "KAI-PRODUCER-GAP-0001")
          await world.sleep(500);
        else if (world.mayPass(error)) await world.sleep(500);
        else throw error;
      } finally {
        life.abort(new Error("its life is over"));
      }
    }
  }
}

/** Each draft once, in order; none that was acknowledged is missing; one end, at the end. */
export function expectProduced(made: Production, log: readonly Event[]): void {
  const { drafts, acknowledged, isOver, goneAfter } = made;
  const numbers = stored(made, log);
  expect(numbers).toEqual(numbers.map((_, i) => i + 1));
  expect(numbers.length).toBeGreaterThanOrEqual(Math.min(acknowledged, drafts.length - 1));
  if (!isOver && goneAfter >= drafts.length) expect(numbers.length).toBe(drafts.length - 1);
  const ends = log.flatMap((e, i) => {
    const { state } = e.payload as { state?: never };
    return e.type === "run.lifecycle" && e.child_id === null && isFinal(state as never) ? [i] : [];
  });
  expect(ends).toEqual([log.length - 1]);
}
