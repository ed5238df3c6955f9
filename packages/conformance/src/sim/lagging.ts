// DROP: readers that stop reading while megabytes are written, and read on. One that may be left behind loses reasoning
// first, then text, never control, and is told how many; and what the server has under way to it is bounded.

import { follow } from "@runwire/client";
import {
  type Draft,
  type Event,
  endsRun,
  isCore,
  limits,
  type StoredEvent,
  type View,
} from "@runwire/protocol";
import type { Key } from "../suites/store/under-test.js";
import type { Tap } from "./network.js";
import { runIsOver } from "./people.js";
import { own } from "./producing.js";
import { following, opener, type Wire } from "./reading.js";
import type { World } from "./world.js";

const inFlightBytesMax = 1024 * 1024;
/** What a server reads at once, unless a single event is larger. */
const rangeBytesMax = 256 * 1024;
/** What an event weighs beside its payload, at most. */
const envelopeBytesMax = 1000;

/** One connection of a reader of core events. */
interface Connection {
  /** The number after which it began. */
  readonly after: number;
  /** What the log was known to have by then: up to there, nothing is skipped. */
  readonly head: number;
  /** Numbers that were not sent. */
  readonly skipped: Set<number>;
  /** Up to where it was looked at. */
  last: number;
}

/** A reader of core events that repairs nothing, and is held to what it missed on each of its connections. */
export function readLossy(world: World, name: string, run_id: string): void {
  const { audit, counts } = world;
  const key = { tenant: world.tenant, run_id };
  const view = world.pick<View>(["default", "full"]);
  const wire = world.pick<Wire>(["sse", "ndjson", "websocket"]);
  const tap = stopping(world, name, run_id);
  const open = opener(world, tap, wire);
  const heard: Event[] = [];
  const over: Connection[] = [];
  let connection: Connection | undefined;
  const last = (): number => heard.at(-1)?.seq ?? 0;

  const core: StoredEvent[] = [];
  let looked = 0;
  let checked = 0;
  world.always(() => {
    const log = audit.log(key, view);
    // It was stored by a server that was killed, and has not moved since.
    if (log.length === 0) return;
    for (; looked < log.length; looked++)
      if (isCore((log[looked] as StoredEvent).type)) core.push(log[looked] as StoredEvent);
    for (; checked < heard.length; checked++) {
      const e = heard[checked] as Event;
      if (core[e.seq - 1]?.id !== e.id)
        throw new Error(`${run_id}, ${view}: heard ${e.id}, the log has ${core[e.seq - 1]?.id}`);
    }
    for (const one of over.splice(0)) expectSkips(one, log, core);
  });
  expectBounded(world, name, key, tap);

  world.begin(`${wire} reader ${name} that loses, ${view}`, async () => {
    const options = following(world, tap, undefined);
    for (;;) {
      const after = last();
      const ended = (): void => {
        if (connection === undefined) return;
        counts.dropped += connection.skipped.size;
        over.push({ ...connection, last: last() });
      };
      const source = open({ run_id, view, dialect: "koder" });
      const onStatus: typeof options.onStatus = (status) => {
        if (status.state === "connecting") {
          ended();
          connection = { after: last(), head: core.length, skipped: new Set(), last: 0 };
        }
        options.onStatus?.(status);
      };
      const patience = world.whole(0, 3) === 0 ? world.whole(20, 200) : Number.POSITIVE_INFINITY;
      let count = 0;
      for await (const item of follow(source, { ...options, after, repair: false, onStatus })) {
        const { skipped = new Set<number>() } = connection ?? {};
        if (item.kind === "gap") {
          for (let seq = item.from; seq <= item.to; seq++) skipped.add(seq);
          continue;
        }
        if (item.kind !== "event") throw new Error(`heard a ${item.kind}`);
        heard.push(item.event);
        if (endsRun(item.event)) {
          ended();
          expectTold(run_id, item.event, skipped.size);
          return;
        }
        count += 1;
        if (count >= patience) break;
      }
      ended();
      connection = undefined;
      if (count < patience) throw new Error("told finished, and the run is not over");
      await world.sleep(world.whole(0, 2000));
    }
  });
}

/** The terminal event tells what this connection was not sent, and nothing where that is nothing. */
function expectTold(run_id: string, { payload }: Event, skipped: number): void {
  const { dropped_count, code } = payload as { dropped_count?: unknown; code?: unknown };
  const told = skipped === 0 ? [undefined, undefined] : [skipped, "KAI-STREAM-BUF-0001"];
  if (dropped_count !== told[0] || code !== told[1])
    throw new Error(`${run_id}: told of ${dropped_count} dropped, ${code}; ${skipped} were`);
}

/**
 * Whoever skips is then more than 1 MiB behind, and skips all reasoning of that; it skips text too where what is not
 * reasoning is still more. So between two reasoning events that were sent, there is that much.
 */
function expectSkips(
  { after, head, skipped, last }: Connection,
  log: readonly StoredEvent[],
  core: readonly StoredEvent[],
): void {
  if (skipped.size === 0) return;
  for (const seq of skipped) {
    const e = core[seq - 1];
    if (seq <= head) throw new Error(`${e?.type} ${seq} was skipped, and ${head} were there before`);
    if (e?.type !== "reasoning.delta" && e?.type !== "text.delta")
      throw new Error(`${e?.type} ${seq} was skipped`);
  }
  let all = 0;
  let others = 0;
  let isSkipped = { reasoning: false, text: false };
  const close = (): void => {
    const { reasoning, text } = isSkipped;
    if ((reasoning || text) && all <= limits.lagBytesMax) throw new Error(`skipped with ${all} bytes to go`);
    if (text && others <= limits.lagBytesMax) throw new Error(`text was skipped with ${others} bytes to go`);
    [all, others, isSkipped] = [0, 0, { reasoning: false, text: false }];
  };
  for (const e of log) {
    if (e.seq < after || (e.seq === after && isCore(e.type))) continue;
    // What it was to skip may reach beyond the last that was heard.
    const isSent = e.seq <= last && !skipped.has(e.seq);
    if (e.type === "reasoning.delta" && isSent) {
      close();
      continue;
    }
    const bytes = e.payloadText.length + envelopeBytesMax;
    all += bytes;
    if (e.type !== "reasoning.delta") others += bytes;
    if (!isCore(e.type) || !skipped.has(e.seq)) continue;
    if (e.type === "reasoning.delta") isSkipped.reasoning = true;
    else isSkipped.text = true;
  }
  close();
}

/** A tap that is shut now and then while the run goes on, for seconds or until megabytes have been written. */
export function stopping(world: World, name: string, run_id: string): Tap {
  const { network, audit } = world;
  const tap = network.tap();
  const key = { tenant: world.tenant, run_id };
  world.begin(`who stops ${name}`, async () => {
    while (!(await runIsOver(world, run_id))) {
      await world.sleep(world.whole(100, 2000));
      tap.isShut = true;
      const untilMs = world.time.ms + world.pick([1000, 5000, 20_000]);
      const events = audit.log(key, "full").length + world.whole(20, 150);
      while (world.time.ms < untilMs && audit.log(key, "full").length < events) await world.sleep(100);
      tap.isShut = false;
    }
  });
  return tap;
}

/** What is under way to a reader that has stopped: not more than is read at once, where no event is larger than that. */
export function expectBounded(world: World, name: string, key: Key, tap: Tap): void {
  let looked = 0;
  let largestBytes = 0;
  world.always(() => {
    const log = world.audit.log(key, "full");
    for (; looked < log.length; looked++)
      largestBytes = Math.max(
        largestBytes,
        (log[looked] as StoredEvent).payloadText.length + envelopeBytesMax,
      );
    const bytes = tap.inFlightBytes;
    if (bytes > Math.max(inFlightBytesMax, rangeBytesMax + largestBytes))
      throw new Error(`${bytes} bytes are under way to ${name}`);
  });
}

/** Much of it: what one of its stretches has is well under what one event may. */
export function heavyStory(world: World, bytes: number): readonly Draft[] {
  const drafts: Draft[] = [];
  let left = bytes;
  const say = (type: string, payload: object, chars: number): void => {
    left -= chars;
    drafts.push({ type, payload: { ...payload, ...own(world, drafts) } } as unknown as Draft);
  };
  const delta = (type: string, charsMax: number): void => {
    for (let i = world.whole(1, 4); i > 0; i--) {
      const chars = world.whole(1, charsMax);
      say(type, { text: "x".repeat(chars) }, chars);
    }
  };
  // A run says more of one than of the other, so that text is not always lost with reasoning.
  const textBytesMax = world.pick([500, 20_000, 40_000]);
  for (let calls = 1; left > 0; calls++) {
    if (world.whole(0, 3) > 0) delta("reasoning.delta", 50_000);
    if (world.whole(0, 3) > 0) delta("text.delta", textBytesMax);
    const chars = world.whole(0, 10_000);
    const call_id = `call_${calls}`;
    say("tool.start", { call_id, tool: "look", input: "i".repeat(chars) }, chars);
    say("tool.end", { call_id, ok: true, output: "x".repeat(world.whole(0, 300)) }, 300);
    if (world.whole(0, 3) === 0) say("usage", { input_tokens: 1, output_tokens: 1 }, 0);
  }
  drafts.push({ type: "run.lifecycle", payload: { state: "done" } });
  return drafts;
}
