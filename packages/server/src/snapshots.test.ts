import { type Dialect, koder, runtime, runwire, StoredEvent } from "@runwire/protocol";
import { expect, it } from "vitest";
import { encodings } from "./encodings.js";
import { firstHead, type Head } from "./log/head.js";
import { stretchOf } from "./log/stretch.js";
import { type Snapshots, snapshots } from "./snapshots.js";
import type { Store } from "./store.js";
import { transcripts } from "./transcripts.js";
import { messagesIn, type Wire, wire } from "./wire.js";

const wireOf = (dialect: unknown): Wire => wire(dialect as Dialect, "in-process", false);
const said = wireOf(runwire);
const perRead = 1000;

/** Logs of any length, whose events say so much, and how often one was read from its beginning. */
function logs(payloadText = "{}") {
  let folds = 0;
  let isBroken = false;
  const store = {
    snapshotBefore: async () => undefined,
    keepSnapshot: async () => {},
    async read({ run_id }: { readonly run_id: string }, _view: unknown, after: number) {
      if (after === 0) folds += 1;
      if (isBroken) throw new Error("damaged");
      return stretchOf(
        Array.from({ length: perRead }, (_, i) => {
          const pos = after + 1 + i;
          return new StoredEvent(`evt_${pos}`, "", "text.delta", run_id, null, pos, pos, payloadText, null);
        }),
      );
    },
  } as unknown as Store;
  const clock = { now: () => 0, monotonic: () => 0 };
  const { of, forget } = snapshots({
    clock,
    transcripts: transcripts(store),
    encodings: encodings(store),
  });
  return {
    of,
    forget,
    break(how: boolean) {
      isBroken = how;
    },
    /** How many logs were folded for this. */
    async folds(act: () => unknown): Promise<number> {
      folds = 0;
      await act();
      return folds;
    },
  };
}

function headAt(pos: number, state: "running" | "done" = "running", run_id = "run_a", tenant = "acme"): Head {
  const head = firstHead({ tenant, run_id } as Head["run"]);
  return { ...head, state, views: { default: { pos, seq: pos }, full: { pos, seq: pos } } };
}

async function numbers(of: Snapshots["of"], ...asked: readonly [Head, number?][]): Promise<number[]> {
  const found: number[] = [];
  for (const [head, heard] of asked) found.push((await of(head, "default", said, heard)).number);
  return found;
}

it("many who begin at once are told the same bytes of one fold", async () => {
  const { of, folds } = logs('{"text":"so"}');
  const all: Awaited<ReturnType<Snapshots["of"]>>[] = [];
  const made = await folds(async () => {
    all.push(
      ...(await Promise.all(Array.from({ length: 25 }, () => of(headAt(9), "default", said, undefined)))),
    );
    all.push(await of(headAt(9), "default", said, undefined));
  });
  expect([made, new Set(all.map(({ bytes }) => bytes)).size]).toEqual([1, 1]);
  const [message] = messagesIn(all[0]?.bytes as Buffer);
  expect(message).toMatchObject({ id: "9", event: "snapshot" });
  expect(JSON.parse(message?.data ?? "")).toMatchObject({ pos: 9, transcript: { message: "so".repeat(9) } });
});

it("each wire and each view has its own", async () => {
  const { of } = logs();
  const all = await Promise.all([
    of(headAt(9), "default", said, undefined),
    of(headAt(9), "full", said, undefined),
    of(headAt(9), "default", wire(runwire as Dialect, "sse", true), undefined),
    of(headAt(9), "default", wireOf(koder), undefined),
  ]);
  expect(new Set(all.map(({ bytes }) => bytes)).size).toBe(4);
});

it("of a live run the last is told until a part of its size has come since [RW-SSE-5]", async () => {
  const { of } = logs();
  const heads = [1600, 1650, 1700, 1701, 1800, 1700].map((pos): [Head] => [headAt(pos)]);
  expect(await numbers(of, ...heads)).toEqual([1600, 1600, 1600, 1701, 1701, 1701]);
  const { of: ofShort } = logs();
  const short = [1, 2, 15, 16, 17].map((pos): [Head] => [headAt(pos)]);
  expect(await numbers(ofShort, ...short)).toEqual([1, 2, 15, 16, 16]);
});

it("of a run that has ended all is told but its end", async () => {
  const { of } = logs();
  expect(await numbers(of, [headAt(1600)], [headAt(1603, "done")], [headAt(1603, "done")])).toEqual([
    1600, 1602, 1602,
  ]);
});

it("nobody is taken back behind what they have heard, if the log has that much", async () => {
  const { of, folds } = logs();
  const asked: [Head, number?][] = [
    [headAt(1600)],
    [headAt(1610), 1600],
    [headAt(1620), 1605],
    [headAt(1620), 9999],
  ];
  expect(await folds(async () => expect(await numbers(of, ...asked)).toEqual([1600, 1600, 1620, 1620]))).toBe(
    2,
  );
});

it("what a dialect tells of a gap is told to those who miss the same", async () => {
  const { of } = logs('{"text":"so"}');
  const ask = (heard?: number) => of(headAt(1600), "default", wireOf(runtime), heard);
  const [none, one, again, other] = [await ask(), await ask(3), await ask(3), await ask(5)];
  expect(again).toBe(one);
  expect(messagesIn(none.bytes)).toHaveLength(1);
  for (const [{ bytes }, gapFrom] of [[one, 4] as const, [other, 6] as const]) {
    const messages = messagesIn(bytes).map(({ data }) => JSON.parse(data));
    expect(messages.map(({ payload }) => payload.recovery)).toMatchObject([{ gapFrom }, { gapFrom }]);
  }
});

it("what could not be folded is folded again for the next who comes", async () => {
  const log = logs();
  log.break(true);
  const asked = [1, 2].map(() => log.of(headAt(9), "default", said, undefined));
  for (const failed of asked) await expect(failed).rejects.toThrow("damaged");
  log.break(false);
  expect(await numbers(log.of, [headAt(9)])).toEqual([9]);
});

it("what is told of a tenant goes with what is erased of it, also while it is made", async () => {
  const { of, forget, folds } = logs();
  const mine = headAt(9);
  const other = headAt(9, "running", "run_a", "acme2");
  await numbers(of, [mine], [other]);
  forget("acme");
  expect(await folds(() => numbers(of, [other]))).toBe(0);
  const making = of(mine, "default", said, undefined);
  forget("acme");
  await making;
  expect(await folds(() => numbers(of, [mine], [mine]))).toBe(1);
});

it("light ones of all runs are remembered, and heavy ones of the last", async () => {
  const heavy = JSON.stringify({ text: "x".repeat(1024 * 1024) });
  const runs = Array.from({ length: 60 }, (_, i): [Head] => [headAt(1, "running", `run_${i}`)]);
  const light = logs();
  await numbers(light.of, ...runs);
  expect(await light.folds(() => numbers(light.of, ...runs))).toBe(0);
  const heavier = logs(heavy);
  await numbers(heavier.of, ...runs);
  expect(await heavier.folds(() => numbers(heavier.of, ...runs.slice(-10)))).toBe(0);
  expect(await heavier.folds(() => numbers(heavier.of, ...runs.slice(0, 20)))).toBe(20);
});
