// Those who follow runs, on every transport, in both views, at their own pace. They are cut off, give up, come back with
// the number they had, and must have heard in the end what the log says: all of it, once, in order.

import {
  type Followed,
  follow,
  ndjsonSource,
  type Source,
  sseSource,
  webSocketSource,
} from "@runwire/client";
import { type Event, endsRun, isCore, type View } from "@runwire/protocol";
import { expect } from "vitest";
import { WebSocket } from "ws";
import type { World } from "./world.js";

export interface Reading {
  readonly run_id: string;
  readonly view: View;
  readonly dialect: "runwire" | "koder";
  readonly heard: readonly Event[];
}

export function read(world: World, name: string, run_id: string): Reading {
  const view = world.pick<View>(["default", "full"]);
  const dialect = world.pick(["runwire", "koder"] as const);
  const wire = world.pick(["sse", "ndjson", "websocket"] as const);
  // A reader that may be left behind is told of gaps and fills them.
  const backpressure = world.pick(["drop", "lossless"] as const);
  const isSlow = world.whole(0, 3) === 0;
  const heard: Event[] = [];
  const number = (e: Event): number => (dialect === "koder" ? e.seq : e.pos);

  world.begin(`${wire} reader ${name}, ${dialect}, ${view}`, async () => {
    for (let isOver = false; !isOver; ) {
      const options = {
        after: heard.length === 0 ? 0 : number(heard.at(-1) as Event),
        random: world.time.random,
      };
      const { clock } = world.endpoint;
      const patience = world.whole(0, 2) === 0 ? world.whole(1, 200) : Number.POSITIVE_INFINITY;
      let count = 0;
      for await (const item of follow(source(), { ...options, ...(clock === undefined ? {} : { clock }) })) {
        isOver ||= hear(item);
        count += 1;
        if (count >= patience) break;
        if (isSlow && world.whole(0, 5) === 0) await world.sleep(world.whole(0, 3000));
      }
      if (!isOver) await world.sleep(world.whole(0, 5000));
    }
  });
  return { run_id, view, dialect, heard };

  /** Whether that was the end. */
  function hear(item: Followed): boolean {
    if (item.kind !== "event") throw new Error(`heard a ${item.kind}: ${JSON.stringify(item)}`);
    const { event } = item;
    const last = heard.at(-1);
    const next = last === undefined ? 1 : number(last) + 1;
    if (number(event) !== next) throw new Error(`heard ${number(event)}, and ${next} was next`);
    heard.push(event);
    return endsRun(event);
  }

  function source(): Source {
    const stream = {
      ...world.endpoint,
      run_id,
      dialect,
      backpressure,
      ...(view === "full" ? { detail: "full" as const } : {}),
    };
    if (wire === "sse") return sseSource(stream);
    if (wire === "ndjson") return ndjsonSource(stream);
    const construct = class extends WebSocket {
      constructor(url: string, protocols: string[]) {
        super(url, protocols, { createConnection: world.network.connect as never });
      }
    };
    return webSocketSource({ ...stream, WebSocket: construct as never });
  }
}

export function expectHeard({ heard, dialect }: Reading, log: readonly Event[]): void {
  const all = log.filter(({ type }) => dialect === "runwire" || isCore(type));
  const told = ({ id, type, pos, seq, payload }: Event) => ({
    ...{ id, type, seq, payload },
    ...(dialect === "runwire" ? { pos } : {}),
  });
  expect(heard.map(told)).toEqual(all.map(told));
}
