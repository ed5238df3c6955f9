// Those who follow runs, on every transport, in both views, at their own pace. They are cut off, give up, come back with
// the number they had, and must have heard in the end what the log says: all of it, once, in order.

import {
  type Followed,
  type FollowOptions,
  follow,
  type HeaderFields,
  ndjsonSource,
  runsSource,
  type Source,
  sseSource,
  webSocketSource,
} from "@runwire/client";
import { type Event, endsRun, isCore, type View } from "@runwire/protocol";
import { expect } from "vitest";
import { WebSocket } from "ws";
import { expectCloses } from "./closing.js";
import type { Tap } from "./network.js";
import type { World } from "./world.js";

export interface Reading {
  readonly tenant: string;
  readonly run_id: string;
  readonly view: View;
  readonly dialect: "runwire" | "koder";
  readonly heard: readonly Event[];
}

type Numbered = Pick<Reading, "dialect">;

const numberIn = ({ dialect }: Numbered, e: Event): number => (dialect === "koder" ? e.seq : e.pos);

/** What was heard is in the log, as soon as it was heard. */
function expectAlways(world: World, reading: Reading): void {
  let checked = 0;
  let at = 0;
  world.always(() => {
    for (; checked < reading.heard.length; checked++) {
      const e = reading.heard[checked] as Event;
      const log = world.audit.log(reading, reading.view);
      // It was erased since; that it was right is known from before.
      if (log.length === 0) return;
      if (reading.dialect === "koder") at = log.findIndex(({ type }, i) => i >= at && isCore(type));
      if (log[at]?.id !== e.id)
        throw new Error(`${reading.run_id}, ${reading.view}: heard ${e.id}, the log has ${log[at]?.id}`);
      at += 1;
    }
  });
}

/** The number of an event is the one after the last. */
function takeNext(of: Numbered, heard: Event[], item: Followed): Event {
  if (item.kind !== "event") throw new Error(`heard a ${item.kind}: ${JSON.stringify(item)}`);
  const { event } = item;
  const last = heard.at(-1);
  const next = last === undefined ? 1 : numberIn(of, last) + 1;
  if (numberIn(of, event) !== next) throw new Error(`heard ${numberIn(of, event)}, and ${next} was next`);
  heard.push(event);
  return event;
}

export function read(
  world: World,
  name: string,
  run_id: string,
  {
    tap = world.network.tap(),
    ...given
  }: { readonly tap?: Tap; readonly backpressure?: "drop" | "lossless" } = {},
): Reading {
  const view = world.pick<View>(["default", "full"]);
  const dialect = world.pick(["runwire", "koder"] as const);
  const wire = world.pick(["sse", "ndjson", "websocket"] as const);
  // A reader that may be left behind is told of gaps and fills them; for another there are none.
  const backpressure = given.backpressure ?? world.pick(["drop", "lossless"] as const);
  const isSlow = world.whole(0, 3) === 0;
  const repair = backpressure === "drop";
  const isDefault = dialect === "runwire" && !repair;
  const open = opener(world, tap, wire);
  const heard: Event[] = [];
  const { tenant } = world;
  const reading: Reading = { tenant, run_id, view, dialect, heard };
  expectAlways(world, reading);

  world.begin(`${wire} reader ${name}, ${dialect}, ${view}`, async () => {
    for (let isOver = false; !isOver; ) {
      const after = heard.length === 0 ? 0 : numberIn(reading, heard.at(-1) as Event);
      const patience = world.whole(0, 2) === 0 ? world.whole(1, 200) : Number.POSITIVE_INFINITY;
      let count = 0;
      const source = open({ run_id, view, dialect, ...(isDefault ? {} : { backpressure }) });
      const heardOf = await untilDamaged(world, async () => {
        for await (const item of follow(source, { ...following(world, tap, after), repair })) {
          isOver ||= endsRun(takeNext(reading, heard, item));
          count += 1;
          if (count >= patience) return "enough";
          if (isSlow && world.whole(0, 5) === 0) await world.sleep(world.whole(0, 3000));
        }
        return "all";
      });
      if (heardOf === "all" && !isOver) throw new Error("told finished, and the run is not over");
      if (!isOver) await world.sleep(world.whole(0, 5000));
    }
  });
  return reading;
}

/** Whoever listens to what is damaged for a while is refused, and comes back. */
async function untilDamaged(
  world: World,
  listen: () => Promise<"enough" | "all">,
): Promise<"enough" | "all"> {
  try {
    return await listen();
  } catch (error) {
    if (!world.mayPass(error)) throw error;
    return "enough";
  }
}

interface Wanted extends Pick<Reading, "run_id" | "view" | "dialect"> {
  readonly backpressure?: "drop" | "lossless";
}

export type Wire = "sse" | "ndjson" | "websocket";

/** How to follow by the world's time, with an eye on how connections end. */
export function following(world: World, tap: Tap, after: FollowOptions["after"]): FollowOptions {
  const { clock } = world.endpoint;
  return {
    ...(after === undefined ? {} : { after }),
    random: world.time.random,
    onStatus: expectCloses(world, tap),
    ...(clock === undefined ? {} : { clock }),
  };
}

/** Sources on a wire, whose connections all go through the tap. */
export function opener({ endpoint }: World, tap: Tap, wire: Wire): (wanted: Wanted) => Source {
  const headers = endpoint.headers as HeaderFields | undefined;
  const Tapped = class extends WebSocket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols, { createConnection: tap.connect as never, headers });
    }
  };
  return ({ view, ...wanted }) => {
    const detail = view === "full" ? { detail: "full" as const } : {};
    const stream = { ...endpoint, fetch: tap.fetch, ...wanted, ...detail };
    if (wire === "sse") return sseSource(stream);
    if (wire === "ndjson") return ndjsonSource(stream);
    return webSocketSource({ ...stream, WebSocket: Tapped as never });
  };
}

/** Several runs on one connection, each from its own cursor, until all have ended. */
export function readMany(world: World, name: string, runs: readonly string[]): readonly Reading[] {
  const view = world.pick<View>(["default", "full"]);
  const dialect = world.pick(["runwire", "koder"] as const);
  const heard = new Map(runs.map((run_id): [string, Event[]] => [run_id, []]));
  const { tenant } = world;
  const readings = runs.map((run_id) => ({ tenant, run_id, view, dialect, heard: heard.get(run_id) ?? [] }));
  for (const reading of readings) expectAlways(world, reading);
  const tap = world.network.tap();
  const isOver = (): boolean => readings.every(({ heard: own }) => own.some((e) => endsRun(e)));
  world.begin(`reader of many ${name}, ${dialect}, ${view}`, async () => {
    const detail = view === "full" ? { detail: "full" as const } : {};
    while (!isOver()) {
      const left = readings.filter(({ heard: own }) => !own.some((e) => endsRun(e)));
      const after = new Map(
        left.map((reading): [string, number] => {
          const last = reading.heard.at(-1);
          return [reading.run_id, last === undefined ? 0 : numberIn(reading, last)];
        }),
      );
      const source = runsSource({
        ...world.endpoint,
        fetch: tap.fetch,
        ...detail,
        dialect,
        backpressure: "lossless",
        runs: [...after.keys()],
      });
      const patience = world.whole(0, 2) === 0 ? world.whole(1, 300) : Number.POSITIVE_INFINITY;
      let count = 0;
      const heardOf = await untilDamaged(world, async () => {
        for await (const item of follow(source, { ...following(world, tap, after), repair: false })) {
          const of = item.kind === "event" ? heard.get(item.event.run_id) : undefined;
          takeNext({ dialect }, of ?? [], item);
          count += 1;
          if (count >= patience) return "enough";
        }
        return "all";
      });
      if (heardOf === "all" && !isOver()) throw new Error("told finished, and not all runs are over");
      if (!isOver()) await world.sleep(world.whole(0, 5000));
    }
  });
  return readings;
}

/** What a connection did not send was told with the end, and had from the stored events. */
function withoutLoss(payload: object): object {
  const { dropped_count, ...rest } = payload as { dropped_count?: unknown; code?: unknown };
  return dropped_count === undefined ? payload : { ...rest, code: undefined };
}

export function expectHeard({ heard, dialect }: Reading, log: readonly Event[]): void {
  const all = log.filter(({ type }) => dialect === "runwire" || isCore(type));
  const told = ({ id, type, pos, seq, payload }: Event) => ({
    ...{ id, type, seq, payload: withoutLoss(payload) },
    ...(dialect === "runwire" ? { pos } : {}),
  });
  expect(heard.map(told)).toEqual(all.map(told));
}
