// What is true of every tree of runs at every moment, whatever was appended, whenever it is asked.
//
//   numbers   pos 1, 2, 3 …; seq counts core events; ids ascend; the end is last; the head agrees
//   mirrors   an ancestor's log holds each descendant's log: same ids, same text, same order
//   shape     see shaping.ts; at the end the default log lacks exactly what the head calls pending
//   meaning   with nothing pending, both views fold to the same transcript

import {
  emptyTranscript,
  endsRun,
  isCore,
  isFinal,
  reduce,
  type StoredEvent,
  type Transcript,
  type View,
} from "@runwire/protocol";
import { expect } from "vitest";
import { shaping } from "./shaping.js";
import { treeOf } from "./tree.js";
import type { HeadUnderTest, Key, RunUnderTest, StoreUnderTest } from "./under-test.js";

export const views: readonly View[] = ["default", "full"];

const readBytes = 64 * 1024;
const readsMax = 100_000;

/** A whole log, read as readers read it: cut by cut. */
export async function wholeLog(
  store: Pick<StoreUnderTest, "read">,
  key: Key,
  view: View,
  bytesMax: number = readBytes,
): Promise<readonly StoredEvent[]> {
  const events: StoredEvent[] = [];
  for (let reads = 0; reads < readsMax; reads++) {
    const { events: cut } = await store.read(key, view, events.at(-1)?.pos ?? 0, bytesMax);
    if (cut.length === 0) return events;
    events.push(...cut);
  }
  throw new Error(`${key.run_id} does not end`);
}

interface Log {
  readonly head: HeadUnderTest;
  readonly run: RunUnderTest;
  readonly default: readonly StoredEvent[];
  readonly full: readonly StoredEvent[];
}

export interface SoundnessOptions {
  /** Whether the clock only went forward. One that went back tells nothing of the pace. */
  readonly steadyClock?: boolean;
}

/** Checks a whole tree, and gives back its logs by run id. */
export async function expectSoundTree(
  store: StoreUnderTest,
  root: Key,
  { steadyClock = true }: SoundnessOptions = {},
): Promise<ReadonlyMap<string, Log>> {
  const logs = new Map<string, Log>();
  for (const run of await treeOf(store, root)) {
    const key = { tenant: root.tenant, run_id: run.run_id };
    const head = await store.head(key);
    if (head === undefined) throw new Error(`${run.run_id} has no head`);
    logs.set(run.run_id, {
      run,
      head,
      default: await wholeLog(store, key, "default"),
      full: await wholeLog(store, key, "full"),
    });
  }
  expect(logs.has(root.run_id)).toBe(true);
  for (const log of logs.values()) {
    for (const view of views) expectNumbers(log, view);
    expectMirrors(logs, log);
    expectShape(log, steadyClock);
    const below = [...logs.values()].filter((other) => isAtOrBelow(logs, other.run, log.run.run_id));
    if (below.every(({ head }) => head.groups.length === 0)) expectOneMeaning(log);
  }
  return logs;
}

function expectNumbers({ head, run, ...log }: Log, view: View): void {
  const events = log[view];
  const last = events.at(-1);
  expect({ pos: last?.pos ?? 0, seq: last?.seq ?? 0 }).toEqual(head.views[view]);
  let seq = 0;
  let id = "";
  for (const [i, e] of events.entries()) {
    if (isCore(e.type)) seq += 1;
    if (e.pos !== i + 1 || e.seq !== seq || e.id <= id || e.run_id !== run.run_id) {
      expect({ view, pos: e.pos, seq: e.seq, run_id: e.run_id }).toEqual({
        view,
        pos: i + 1,
        seq,
        run_id: run.run_id,
      });
      expect(e.id > id, `${e.id} comes after ${id}`).toBe(true);
    }
    id = e.id;
  }
  const ends = events.filter((e) => endsRun(e));
  expect(ends).toEqual(head.state !== null && isFinal(head.state) ? [last] : []);
}

function expectMirrors(logs: ReadonlyMap<string, Log>, log: Log): void {
  for (const view of views) {
    const own = log[view].filter(({ child_id }) => child_id === null).map(identity);
    for (let at = log.run.parent_id; at !== null; ) {
      const ancestor = logs.get(at);
      if (ancestor === undefined) throw new Error(`${at} is not in its own tree`);
      const mirrored = ancestor[view].filter(({ child_id }) => child_id === log.run.run_id);
      expect(mirrored.map(identity)).toEqual(own);
      at = ancestor.run.parent_id;
    }
    const strangers = log[view].filter(({ child_id }) => {
      const child = child_id === null ? log.run : logs.get(child_id)?.run;
      return child === undefined || !isAtOrBelow(logs, child, log.run.run_id);
    });
    expect(strangers).toEqual([]);
  }
}

function identity({ id, ts, type, payloadText, scopeText }: StoredEvent): readonly unknown[] {
  return [id, ts, type, payloadText, scopeText];
}

function isAtOrBelow(logs: ReadonlyMap<string, Log>, run: RunUnderTest, run_id: string): boolean {
  for (let at: RunUnderTest | undefined = run; at !== undefined; at = logs.get(at.parent_id ?? "")?.run) {
    if (at.run_id === run_id) return true;
  }
  return false;
}

function expectShape({ head, run, ...log }: Log, steadyClock: boolean): void {
  const law = shaping(run.run_id, steadyClock);
  for (const view of ["full", "default"] as const) for (const e of log[view]) law.take(view, e);
  law.expectPending(head.groups);
}

function expectOneMeaning(log: Log): void {
  expect(meaning(fold(log.run.run_id, log.default))).toEqual(meaning(fold(log.run.run_id, log.full)));
}

export function fold(run_id: string, events: readonly StoredEvent[]): Transcript {
  return events.reduce<Transcript>((t, e) => reduce(t, e), emptyTranscript(run_id));
}

/** Everything but the numbers of the log. Through text, because `toEqual` is lenient with `__proto__`. */
export function meaning(t: Transcript): unknown {
  return JSON.parse(
    JSON.stringify(t, (name, value) => (name === "pos" || name === "seq" ? undefined : value)),
  );
}
