// The law SHAPE of one run, looked at as its two logs grow. What the full log says waits here, stretch by stretch, until
// the default log has said it too.
//
//   shape   between two control events of a run the default log says, group by group, what the full log says
//   pace    text and reasoning of a run that none of its control events separates or flushes are 100 ms apart

import { type Draft, flowOf, limits, type StoredEvent, type View } from "@runwire/protocol";
import type { Pending } from "./under-test.js";

export interface Shaping {
  /** The next event of the run's log: of the full one first. What runs below it say is their own matter. */
  take(view: View, e: StoredEvent): void;
  /** Both logs were read on to the same moment: what the default one lacks is what its head calls pending. */
  expectPending(groups: readonly Pending[]): void;
}

interface Stretch {
  /** The control event it begins with. */
  readonly after: string;
  /** What the full log says in it, by group, and the default log does not yet. */
  readonly rest: Map<string, string>;
}

/** Where the clock was not steady, it may have gone back; how far apart two events are is then not known. */
export function shaping(run_id: string, steadyClock: boolean): Shaping {
  const stretches: Stretch[] = [{ after: "", rest: new Map() }];
  let saidMs = Number.NEGATIVE_INFINITY;
  /** It comes too soon, unless it goes out in front of a control event. */
  let early: { readonly e: StoredEvent; readonly afterMs: number } | undefined;

  const wrong = (e: StoredEvent, why: string): Error =>
    new Error(`${run_id}, default: ${e.type} at ${e.pos} ${why}`);

  function expectNotEarly(): void {
    if (early !== undefined) throw wrong(early.e, `comes ${early.afterMs} ms after the one before it`);
  }

  function takeControl(e: StoredEvent): void {
    const [open, next] = stretches;
    if (open === undefined || next?.after !== e.id) throw wrong(e, `and the full log has ${next?.after}`);
    if (open.rest.size > 0) throw wrong(e, `comes before ${shown(open.rest)}`);
    stretches.shift();
    saidMs = Number.NEGATIVE_INFINITY;
    // What is pending goes out in front of the run's next control event, however soon that comes.
    if (early?.e.ts === e.ts) early = undefined;
    expectNotEarly();
  }

  function takeDelta(e: StoredEvent): void {
    const said = saidBy(e.type, e.payload);
    const { rest } = stretches[0] as Stretch;
    const group = groupOf(e);
    const whole = rest.get(group) ?? "";
    if (!whole.startsWith(said))
      throw wrong(e, `says ${JSON.stringify(said.slice(0, 100))}, and what comes next is ${shown(rest)}`);
    if (whole.length > said.length) rest.set(group, whole.slice(said.length));
    else rest.delete(group);
    if (flowOf(e.type) === "core-delta") keepPace(e);
  }

  function keepPace(e: StoredEvent): void {
    if (early !== undefined && early.e.ts !== e.ts) expectNotEarly();
    const ms = Date.parse(e.ts);
    const afterMs = ms - saidMs;
    saidMs = ms;
    // A group that is full goes out at once.
    if (e.payloadText.length >= limits.groupBytesMax) return;
    if (afterMs < limits.tickMs && (steadyClock || afterMs >= 0)) early ??= { e, afterMs };
  }

  return {
    take(view, e) {
      if (e.child_id !== null) return;
      const isControl = flowOf(e.type) === "control";
      if (view === "default") {
        if (isControl) takeControl(e);
        else takeDelta(e);
      } else if (isControl) stretches.push({ after: e.id, rest: new Map() });
      else join((stretches.at(-1) as Stretch).rest, e);
    },
    expectPending(groups) {
      expectNotEarly();
      const pending = new Map<string, string>();
      for (const { type, payload, text, chunks } of groups)
        join(pending, { type, payload: chunks === null ? { ...payload, text } : { ...payload, chunks } });
      const [open, lacking] = stretches;
      if (open === undefined || lacking !== undefined)
        throw new Error(`${run_id}, default: lacks ${lacking?.after}`);
      const isPending = open.rest.size === pending.size;
      if (!isPending || [...pending].some(([group, said]) => open.rest.get(group) !== said))
        throw new Error(`${run_id}, default: lacks ${shown(open.rest)}, and pending is ${shown(pending)}`);
    },
  };
}

type Delta = Pick<Draft, "type"> & { readonly payload: object };

function join(groups: Map<string, string>, delta: Delta): void {
  const said = saidBy(delta.type, delta.payload);
  if (said === "") return;
  const group = groupOf(delta);
  groups.set(group, (groups.get(group) ?? "") + said);
}

function groupOf({ type, payload }: Delta): string {
  const { call_id = null, process_id = null } = payload as { call_id?: unknown; process_id?: unknown };
  return JSON.stringify([type, call_id, type === "process.output" ? process_id : null]);
}

/** What a delta says, so that joining is concatenation. */
export function saidBy(type: string, payload: object): string {
  const { text = "", chunks = [] } = payload as { text?: string; chunks?: readonly string[] };
  return type === "audio.delta" ? chunks.map((chunk) => `${JSON.stringify(chunk)},`).join("") : text;
}

function shown(groups: ReadonlyMap<string, string>): string {
  return [...groups].map(([group, said]) => `${group} ${JSON.stringify(said.slice(0, 100))}`).join(", ");
}
