// Producers as they are where much goes wrong: what they send comes twice at the same time, out of order, with gaps,
// from lives that are over, with other bodies under the same numbers, over connections that break, to a server that
// is killed. A model says which answers each append may get, and in the end the logs hold what it holds, in order, once.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Draft, Event, Facts } from "@runwire/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  allEvents,
  append,
  call,
  claimHeaders,
  codeOf,
  createRun,
  lifecycle,
  lines,
  ndjson,
  runPath,
  say,
  text,
} from "./calls.js";
import { chance, isSoak } from "./chance.js";
import { openSession } from "./open-session.js";
import { rawConnection, requestText } from "./raw-http.js";
import { type ServerProcess, startServer } from "./server-process.js";

const luck = chance("producer faults");
const appendsMin = isSoak ? 10_000 : 400;
const kills = isSoak ? 20 : 2;
const runCount = 3;
/** Ids are a run's own: each of them writes to every run. */
const ids = ["constructor", "a:b.c-d", "p"];
const firstEpoch = 5;
/** Nobody is cut off as often as this. */
const triesMax = 50;

const command = [
  process.execPath,
  fileURLToPath(new URL("../../../cli/bin/runwire.js", import.meta.url)),
  "serve",
];
const folder = mkdtempSync(join(tmpdir(), "runwire-producers-"));
/** The server that runs, or the one that will. */
let up: Promise<ServerProcess>;
let appends = 0;

beforeAll(async () => {
  up = startServer(command, folder);
  await up;
});

afterAll(async () => {
  const server = await up;
  server.kill("SIGKILL");
  await server.exited;
  rmSync(folder, { recursive: true });
});

function killAndRestart(): void {
  up = up.then(async (server) => {
    server.kill("SIGKILL");
    await server.exited;
    expect(server.stderr).toBe("");
    return startServer(command, folder);
  });
}

/** One producer of one run, as the model knows it. */
interface Writer {
  readonly run_id: string;
  readonly id: string;
  /** That of the life that wrote last; undefined before the first. */
  epoch?: number;
  /** What is stored under each of its numbers, from 1. */
  readonly words: string[];
}

interface Batch {
  readonly epoch: number;
  readonly seq: number;
  readonly drafts: readonly Draft[];
}

interface Answer {
  readonly code: string | undefined;
  readonly last_producer_seq: number | undefined;
  /** Where it was stored, which a session does not say; null where nothing was. */
  readonly first_pos?: number | null;
  readonly last_pos: number;
}

const fenced = "KAI-PRODUCER-FENCED-0001";
const gap = "KAI-PRODUCER-GAP-0001";
const statuses = new Map<string | undefined, number>([
  [undefined, 200],
  [fenced, 403],
  [gap, 409],
  ["KAI-RUN-STATE-0001", 409],
]);

/** What stands where, as the answers say. */
const places = new Map<string, Map<number, string>>();
let wordsMade = 0;

/** Another one each time, so that it shows whose was stored. */
function freshDraft(writer: Writer): Draft {
  wordsMade += 1;
  return draftOf(`<${writer.id} ${wordsMade}>`);
}

const draftOf = (word: string): Draft =>
  Number(/\d+/.exec(word)) % 2 === 0 ? text(word) : say("custom", { text: word });
const wordOf = ({ payload }: { readonly payload: object }): string =>
  (payload as { text?: string }).text ?? "";

function verdictOn({ epoch, words }: Writer, claim: Batch): string | undefined {
  const stored = words.length;
  if (epoch !== undefined && claim.epoch < epoch) return fenced;
  const isNew = epoch !== undefined && claim.epoch > epoch;
  return claim.seq > stored + 1 || (isNew && claim.seq <= stored) ? gap : undefined;
}

function store(writer: Writer, { epoch, seq, drafts }: Batch): void {
  const fresh = drafts.slice(Math.max(0, writer.words.length + 1 - seq));
  if (fresh.length === 0) return;
  writer.epoch = epoch;
  writer.words.push(...fresh.map(wordOf));
}

/** A whole request in one connection; undefined where that broke, or the client hung up. */
async function post(
  url: string,
  { run_id, id }: Writer,
  batch: Batch,
  asLines: boolean,
  hangsUp: boolean,
): Promise<Answer | undefined> {
  const body = asLines ? lines(batch.drafts) : JSON.stringify(batch.drafts);
  const headers = { ...(asLines ? ndjson : {}), ...claimHeaders({ id, ...batch }), Connection: "close" };
  const headerLines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const request = requestText(url, "POST", runPath(run_id, "events"), headerLines, body);
  const raw = await rawConnection(url);
  if (hangsUp) {
    // More often than not the server has all of it.
    raw.write(request.slice(0, luck.pick([request.length, request.length, luck.whole(1, request.length)])));
    raw.socket.destroy();
    return undefined;
  }
  raw.write(request);
  await raw.ended;
  const [, status, told] = /^HTTP\/1\.1 (\d+)[\s\S]*?\r\n\r\n([\s\S]+)$/.exec(raw.text) ?? [];
  if (told === undefined) return undefined;
  const answer = JSON.parse(told) as Facts;
  const code = codeOf({ body: answer } as never);
  expect([code, Number(status)]).toEqual([code, statuses.get(code)]);
  return { ...(answer as unknown as Answer), code };
}

async function session(
  url: string,
  { run_id, id }: Writer,
  batch: Batch,
  hangsUp: boolean,
): Promise<Answer | undefined> {
  const open = openSession(url, run_id, claimHeaders({ id, ...batch }));
  const body = lines(batch.drafts);
  const cut = luck.whole(0, body.length);
  open.write(body.slice(0, cut));
  if (hangsUp) {
    open.destroy();
    await open.answer().catch(() => undefined);
    return undefined;
  }
  open.end(body.slice(cut));
  let last: Facts | undefined;
  for (let told = await open.answer(); told !== undefined; told = await open.answer()) last = told as Facts;
  if (last === undefined) return undefined;
  const answer = { ...(last as unknown as Answer), code: codeOf({ body: last } as never) };
  const isWhole = answer.code !== undefined || Number(answer.last_producer_seq) >= lastSeq(batch);
  return isWhole ? answer : undefined;
}

const lastSeq = ({ seq, drafts }: Batch): number => seq + drafts.length - 1;

const ways = ["array", "lines", "session"] as const;
type Way = (typeof ways)[number];

/** Sends it until it is answered. Where it may be stored later than it is given up, that is its sender's to know. */
async function answerTo(
  writer: Writer,
  batch: Batch,
  { mayHangUp = true, by = ways as readonly Way[] } = {},
): Promise<Answer> {
  for (let tries = 0; tries < triesMax; tries++) {
    const now = up;
    const { url } = await now;
    appends += 1;
    if (appends % Math.ceil(appendsMin / (kills + 1)) === 0) killAndRestart();
    const way = luck.pick(by);
    const hangsUp = mayHangUp && luck.whole(0, 7) === 0;
    const answer = await (way === "session"
      ? session(url, writer, batch, hangsUp)
      : post(url, writer, batch, way === "lines", hangsUp)
    ).catch((error: Error) => {
      if (error.name === "AssertionError") throw error;
      return undefined;
    });
    if (answer !== undefined) {
      keepPlace(writer, batch, answer);
      return answer;
    }
    // Only who hangs up, and a server that is killed, leave a request without an answer.
    expect([way, hangsUp || up !== now]).toEqual([way, true]);
  }
  throw new Error("it was never answered");
}

function keepPlace({ run_id }: Writer, { drafts }: Batch, { first_pos, last_pos }: Answer): void {
  if (typeof first_pos !== "number") return;
  const stored = drafts.slice(drafts.length - (last_pos - first_pos + 1));
  const known = places.get(run_id) ?? new Map<number, string>();
  places.set(run_id, known);
  for (const [i, draft] of stored.entries()) known.set(first_pos + i, wordOf(draft));
}

/** Any claim, once or several times at once: what comes of it follows from the model. */
async function claims(writer: Writer): Promise<void> {
  const stored = writer.words.length;
  const seq = Math.max(1, stored + 1 + luck.pick([-6, -3, -2, -1, 0, 0, 0, 0, 0, 0, 1, 2]));
  const repeats = luck.pick([true, false]);
  const batch: Batch = {
    epoch: (writer.epoch ?? firstEpoch) + luck.pick([-1, 0, 0, 0, 0, 0, 1]),
    seq,
    drafts: Array.from({ length: luck.whole(1, 5) }, (_, i) => {
      const word = writer.words[seq + i - 1];
      return word !== undefined && repeats ? draftOf(word) : freshDraft(writer);
    }),
  };
  const code = verdictOn(writer, batch);
  // What leaves a gap now may fit later, when nobody waits for it any more.
  const mayHangUp = code !== gap;
  const copies = Array.from({ length: luck.pick([1, 1, 2, 3]) }, () =>
    answerTo(writer, batch, { mayHangUp }),
  );
  const answers = await Promise.all(copies);
  if (code === undefined) store(writer, batch);
  const said = code === undefined ? writer.words.length : undefined;
  for (const answer of answers) expect([answer.code, answer.last_producer_seq]).toEqual([code, said]);
  const storing = answers.filter(({ first_pos }) => typeof first_pos === "number");
  expect(storing.length).toBeLessThanOrEqual(writer.words.length > stored ? 1 : 0);
}

function freshBatch(writer: Writer, epoch: number, seq: number): Batch {
  return { epoch, seq, drafts: Array.from({ length: luck.whole(1, 5) }, () => freshDraft(writer)) };
}

/** Two batches of which the second may come first: then it is a gap, and fits when it comes again. */
async function reordered(writer: Writer): Promise<void> {
  const epoch = writer.epoch ?? firstEpoch;
  const early = freshBatch(writer, epoch, writer.words.length + 1);
  const late = freshBatch(writer, epoch, lastSeq(early) + 1);
  const isLateFirst = luck.pick([true, false]);
  const [one, other] = await Promise.all(
    (isLateFirst ? [late, early] : [early, late]).map((b) => answerTo(writer, b)),
  );
  const [ofEarly, ofLate] = isLateFirst ? [other, one] : [one, other];
  expect(ofEarly?.code).toBe(undefined);
  expect([undefined, gap]).toContain(ofLate?.code);
  store(writer, early);
  store(writer, late);
  expect(await answerTo(writer, late)).toMatchObject({
    code: undefined,
    last_producer_seq: writer.words.length,
  });
}

/** A life that is over and does not know, and the one after it: whichever writes first keeps the other out. */
async function race(writer: Writer): Promise<void> {
  const epoch = writer.epoch ?? firstEpoch;
  const seq = writer.words.length + 1;
  const old = freshBatch(writer, epoch, seq);
  const young = freshBatch(writer, epoch + 1, seq);
  const [ofOld, ofYoung] = await Promise.all([old, young].map((batch) => answerTo(writer, batch)));
  const codes = [ofOld?.code, ofYoung?.code];
  expect([
    [undefined, gap],
    [fenced, undefined],
  ]).toContainEqual(codes);
  store(writer, codes[0] === undefined ? old : young);
}

/** A batch that the run's state forbids: its numbers are free as before. */
async function refused(writer: Writer): Promise<void> {
  const batch: Batch = {
    epoch: (writer.epoch ?? firstEpoch) + luck.whole(0, 1),
    seq: writer.words.length + 1,
    drafts: [freshDraft(writer), lifecycle("planning")],
  };
  const { code } = await answerTo(writer, batch, { by: ["array", "lines"] });
  expect(code).toBe("KAI-RUN-STATE-0001");
}

const moves = [claims, claims, claims, claims, reordered, race, refused];

async function produce(writer: Writer): Promise<void> {
  while (appends < appendsMin) {
    await luck.pick(moves)(writer);
    const now = up;
    const { url } = await now;
    const known = await call(url, "GET", runPath(writer.run_id, `producers/${writer.id}`)).catch(
      () => undefined,
    );
    expect(known !== undefined || up !== now).toBe(true);
    if (known !== undefined)
      expect([known.body.epoch, known.body.last_producer_seq]).toEqual([
        writer.epoch ?? 0,
        writer.words.length,
      ]);
  }
}

const wordsIn = (events: readonly Event[]): readonly string[] =>
  events.flatMap((e) => wordOf(e).match(/<[^>]+>/g) ?? []);

describe("duplicate, reordered, gapped and outlived producers, cut connections and a server that is killed", () => {
  it("leave each number stored once, as it was first stored, in order, where its answer said [RW-PRODUCER-1] [RW-PRODUCER-2] [RW-PRODUCER-3] [RW-APPEND-2] [RW-LOG-5]", async () => {
    const { url } = await up;
    const runs = await Promise.all(Array.from({ length: runCount }, () => createRun(url)));
    const writers = runs.flatMap((run_id) => ids.map((id): Writer => ({ run_id, id, words: [] })));
    await Promise.all(writers.map(produce));
    killAndRestart();
    const server = await up;

    // All that was ever sent, once more, with other bodies.
    for (const writer of writers) {
      const { run_id, id, epoch = firstEpoch, words } = writer;
      const drafts = words.map(() => freshDraft(writer));
      if (drafts.length === 0) continue;
      const again = await call(
        server.url,
        "POST",
        runPath(run_id, "events"),
        drafts,
        claimHeaders({ id, epoch, seq: 1 }),
      );
      expect([again.status, again.body.first_pos, again.body.last_producer_seq]).toEqual([
        200,
        null,
        words.length,
      ]);
    }
    let stored = 0;
    for (const run_id of runs) {
      // What still waits to be joined comes before it.
      await append(server.url, run_id, say("title", { title: "all" }));
      const full = await allEvents(server.url, run_id);
      expect(full.map(({ pos }) => pos)).toEqual(full.map((_, i) => i + 1));
      expect(full.map(({ id }) => id)).toEqual([...new Set(full.map(({ id }) => id))].sort());
      const whole = wordsIn(full);
      stored += whole.length;
      for (const { id, words } of writers.filter((writer) => writer.run_id === run_id))
        expect(whole.filter((word) => word.startsWith(`<${id} `))).toEqual(words);
      const shown = wordsIn(await allEvents(server.url, run_id, { detail: "default" }));
      expect([...shown].sort()).toEqual([...whole].sort());
      for (const [pos, word] of places.get(run_id) ?? [])
        expect([pos, wordOf(full[pos - 1] as Event)]).toEqual([pos, word]);
    }
    expect(stored).toBe(writers.reduce((sum, { words }) => sum + words.length, 0));
    process.stdout.write(
      `producer faults: ${appends} appends, ${stored} stored events, ${kills + 1} kills\n`,
    );
    expect(server.stderr).toBe("");
  });

  it("create a run once under a key, and are refused with 422 where the same key comes with another body [RW-IDEM-1] [RW-IDEM-2]", async () => {
    const asked = { prompt: "go", producer: "external", lease_ms: 600_000 };
    const create = async (body: Facts) => {
      const { url } = await up;
      return call(url, "POST", "/v1/agent/runs", body, { "Idempotency-Key": "once" });
    };
    const made = await Promise.all([1, 2, 3].map(() => create(asked)));
    killAndRestart();
    made.push(await create(asked));
    expect(made.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    expect(new Set(made.map(({ body }) => body.run_id)).size).toBe(1);
    const other = await create({ ...asked, prompt: "stop" });
    expect([other.status, codeOf(other)]).toEqual([422, "KAI-REQUEST-KEY-0001"]);
    expect((await create(asked)).body.run_id).toBe(made[0]?.body.run_id);
  });
});
