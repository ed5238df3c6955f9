// The pure heart of the write path: drafts become numbered, shaped, mirrored records against heads that the
// store holds still. No I/O happens here, and nothing here outlives a commit that fails.
//
// Shaping (per producing run):
//   delta    → the full log at once, and into its group (groups.ts)
//   control  → first every group of the run, oldest first, to the default log; then itself to both
//   due      → 100 ms after the last tick: the core group that has waited longest, and every extended one
// A joined record stores in `covers` how far into the full log its group now reaches, so what is pending is
// always "the full log after `covers`", and a crash needs no other repair than the next tick.

import {
  type Draft,
  type Facts,
  flowOf,
  type IdSource,
  limits,
  newFold,
  RunwireError,
} from "@runwire/protocol";
import { advance, withProducer } from "./advance.js";
import { feedsOf, shownIn } from "./feeds.js";
import { type Group, groupBefore, joinedChars, joinedPayload } from "./groups.js";
import { checkLive, endsBetween, feedHead, firstHead, type Head, nextIn } from "./head.js";
import {
  type Allowance,
  type BlobRef,
  isFeed,
  noBlobs,
  type Place,
  type ProducerMark,
  type Record,
} from "./record.js";
import type { RunRecord } from "./run-record.js";
import { splitDelta, tooLarge } from "./split.js";

/** What a writer may do inside the transaction. A throw takes back everything this writer did. */
export interface Commit {
  readonly nowMs: number;
  /** The run's head, with what this commit has written so far; undefined for an unknown run. */
  head(run_id: string): Head | undefined;
  newId: IdSource["next"];
  create(run: RunRecord): void;
  /** The tenant's run that was created under this key: committed, or just now. A key is kept as long as its run. */
  createdUnder(key: string): RunRecord | undefined;
  /** How many runs of the tenant live, children among them, with what this commit has written so far. */
  liveRuns(): number;
  /** `blobs` are those that the draft refers to; they are stored already. */
  write(run_id: string, draft: Draft, blobs?: readonly BlobRef[]): void;
  /** The draft as `write` would store it, to compare it with what is stored. */
  asWritten(draft: Draft): Draft;
  /** Kept with whatever else this writer writes. */
  allow(allowance: Omit<Allowance, "at">): void;
  /** Stores how far a fenced producer has come, with whatever else this writer writes. */
  mark(producer: ProducerMark): void;
  /** The run's unsettled model text, given what was unsettled at a position of its default log. */
  unsettledText(run_id: string, pos: number, text: string): string;
  /** Whether the run's lease had run out before this commit. */
  leaseLost(run_id: string): boolean;
  /** Logs that this writer has moved. */
  touched(): readonly string[];
  /** The run's head without what is decided and not yet stored. */
  stored(run_id: string): Head | undefined;
  /** Emits what is due of the run's pending deltas. */
  tick(run_id: string): void;
  /** Emits all of them, as a control event would. */
  flush(run_id: string): void;
}

export interface CommitParts {
  readonly nowMs: number;
  readonly ids: IdSource;
  /** Heads before this writer, of its tenant. */
  readonly headOf: (run_id: string) => Head | undefined;
  readonly storedHeadOf: (run_id: string) => Head | undefined;
  /** What other writers have decided of a run since its head was stored. */
  readonly unstoredOf: (run_id: string) => readonly Record[];
  /** Whether the writer's tenant has, or had, a run of this id. */
  readonly isTaken: (run_id: string) => boolean;
  readonly leaseLost: (run_id: string) => boolean;
  readonly createdUnder: (key: string) => RunRecord | undefined;
  readonly liveRuns: () => number;
}

/** A commit in the making: what one writer wrote, kept apart until it is whole. */
export interface Draftwork {
  readonly commit: Commit;
  readonly records: readonly Record[];
  readonly heads: ReadonlyMap<string, Head>;
  readonly created: readonly RunRecord[];
  readonly allowed: readonly Allowance[];
  /** Heads that moved without a record, and must be stored themselves. */
  readonly kept: ReadonlySet<string>;
}

export function draftwork(parts: CommitParts): Draftwork {
  const { nowMs, ids, headOf, isTaken, leaseLost } = parts;
  const records: Record[] = [];
  const created: RunRecord[] = [];
  const allowed: Allowance[] = [];
  const heads = new Map<string, Head>();
  const kept = new Set<string>();
  const mine = newFold();
  const ts = isoTime(nowMs);
  let producer: ProducerMark | null = null;

  const head = (log: string): Head | undefined => heads.get(log) ?? headOf(log);

  function known(log: string): Head {
    const found = head(log);
    if (found === undefined) throw new RunwireError("KAI-RUN-MISSING-0001", log);
    return found;
  }

  /** Numbers a record in its own log, every ancestor's and the feeds that show it, and moves their heads. */
  function place(
    by: string,
    views: { readonly default: boolean; readonly full: boolean },
    draft: Draft,
    covers: number | null,
    scopeText: string | null,
    blobs = noBlobs,
  ): void {
    const numbered: Place[] = [];
    const { type, payload } = draft;
    for (let log: string | null = by; log !== null; ) {
      const at: Head = known(log);
      numbered.push(placeIn(at, views, type));
      log = at.run.parent_id;
    }
    const producing = known(by);
    const facts = payload as Facts;
    for (const feed of feedsOf(producing, type, facts)) {
      const at: Head = head(feed) ?? feedHead(producing.run.tenant, feed);
      heads.set(feed, at);
      numbered.push(placeIn(at, { default: true, full: false }, type));
    }
    // A list that has grown keeps room for more, and a record is kept for long.
    const places = numbered.slice();
    // The id is above the last one of every log it goes to, also when another writer's clock was ahead.
    for (const { log } of places) ids.raise(known(log).lastId);
    const payloadText = JSON.stringify(payload);
    if (
      payloadText.length * 3 > limits.eventBytesMax &&
      Buffer.byteLength(payloadText) > limits.eventBytesMax
    ) {
      throw tooLarge();
    }
    const record: Record = {
      id: ids.next("evt", nowMs),
      ts,
      type,
      tenant: producing.run.tenant,
      by,
      payloadText,
      scopeText,
      places,
      covers,
      producer,
      blobs,
    };
    records.push(record);
    if (producer !== null) kept.delete(producer.log);
    producer = null;
    for (const at of places)
      heads.set(
        at.log,
        advance(known(at.log), record, at, () => facts, mine),
      );
    for (const [i, at] of places.entries()) {
      const shown = isFeed(at) ? shownIn(at.log, known(by), type, facts, head) : undefined;
      if (shown !== undefined) places[i] = { ...at, shown };
    }
  }

  function emit(run_id: string, group: Group): void {
    const draft = { type: group.type, payload: joinedPayload(group) } as Draft;
    place(run_id, { default: true, full: false }, draft, group.last, group.scopeText);
  }

  function flush(run_id: string): void {
    for (const group of known(run_id).groups) emit(run_id, group);
  }

  function tick(run_id: string): void {
    const { groups, tickMs } = known(run_id);
    // A clock that went back counts as passed.
    if (groups.length === 0 || (nowMs >= tickMs && nowMs - tickMs < limits.tickMs)) return;
    const core = groups.find((group) => flowOf(group.type) === "core-delta");
    for (const group of groups) {
      if (group === core || flowOf(group.type) === "extended-delta") emit(run_id, group);
    }
  }

  function write(run_id: string, draft: Draft, blobs?: readonly BlobRef[]): void {
    checkLive(known(run_id));
    const scopeText = draft.scope === undefined ? null : JSON.stringify(draft.scope);
    if (flowOf(draft.type) === "control") {
      flush(run_id);
      place(run_id, { default: true, full: true }, draft, null, scopeText, blobs);
      return;
    }
    for (const piece of splitDelta(draft)) {
      const before = groupBefore(known(run_id).groups, piece);
      if (before !== undefined) emit(run_id, before);
      place(run_id, { default: false, full: true }, piece, null, scopeText);
      const { groups } = known(run_id);
      const tooMany = groups.length > limits.groupsMax ? groups[0] : undefined;
      for (const group of groups) {
        if (group === tooMany || joinedChars(group) >= limits.groupBytesMax) emit(run_id, group);
      }
    }
  }

  return {
    records,
    heads,
    created,
    allowed,
    kept,
    commit: {
      nowMs,
      head,
      newId: (prefix, ms) => ids.next(prefix, ms),
      create(run) {
        if (isTaken(run.run_id) || heads.has(run.run_id)) {
          throw new RunwireError("KAI-RUN-CHILD-0003", `the id ${run.run_id} is taken`);
        }
        created.push(run);
        heads.set(run.run_id, firstHead(run));
      },
      createdUnder: (key) =>
        created.find(({ idempotency }) => idempotency?.key === key) ?? parts.createdUnder(key),
      liveRuns() {
        let ended = 0;
        for (const [log, head] of heads) {
          if (endsBetween(headOf(log), head)) ended += 1;
        }
        return parts.liveRuns() + created.length - ended;
      },
      touched: () => [...heads.keys()],
      stored: parts.storedHeadOf,
      write,
      asWritten: (draft) => draft,
      allow: (allowance) => void allowed.push({ ...allowance, at: ts }),
      tick,
      flush,
      mark(mark) {
        const head = known(mark.log);
        heads.set(mark.log, { ...head, producers: withProducer(head.producers, mark, mine) });
        // The next record carries it; a writer that writes nothing has its head stored instead.
        producer = mark;
        kept.add(mark.log);
      },
      leaseLost,
      unsettledText(run_id, pos, text) {
        let unsettled = text;
        for (const { by, type, places, payloadText } of [...parts.unstoredOf(run_id), ...records]) {
          if (by !== run_id || (places[0]?.defaultPos ?? 0) <= pos) continue;
          if (type === "message.settled") unsettled = "";
          if (type !== "text.delta") continue;
          const said = JSON.parse(payloadText) as { text: string; call_id?: string | null };
          if (said.call_id == null) unsettled += said.text;
        }
        return unsettled;
      },
    },
  };
}

function placeIn(
  head: Head,
  views: { readonly default: boolean; readonly full: boolean },
  type: Draft["type"],
): Place {
  const none = { pos: 0, seq: 0 };
  const inDefault = views.default ? nextIn(head.views.default, type) : none;
  const inFull = views.full ? nextIn(head.views.full, type) : none;
  return {
    log: head.run.run_id,
    defaultPos: inDefault.pos,
    defaultSeq: inDefault.seq,
    fullPos: inFull.pos,
    fullSeq: inFull.seq,
  };
}

let isoMs = -1;
let isoText = "";

/** `toISOString` costs half a microsecond; a commit's records share one. */
function isoTime(ms: number): string {
  if (ms !== isoMs) {
    isoMs = ms;
    isoText = new Date(ms).toISOString();
  }
  return isoText;
}
