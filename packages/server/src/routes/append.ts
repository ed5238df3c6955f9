// Appending as a producer: a batch (JSON array, or NDJSON of a known length) is all or nothing; NDJSON in
// chunks is a session, committed as it comes.

import type { IncomingMessage } from "node:http";
import {
  type Decoder,
  type Dialect,
  type Draft,
  isId,
  isObject,
  type JsonLimits,
  limits,
  parseDraft,
  type RunState,
  RunwireError,
  runwire,
  unfitJson,
} from "@runwire/protocol";
import { z } from "zod";
import { batchValues, checkType, readText } from "../http/body.js";
import { badParam } from "../http/check.js";
import { dialectParam } from "../http/query.js";
import { type Call, type Reply, type Route, route } from "../http/route.js";
import { draft, id, json, members, messageOf } from "../http/shapes.js";
import type { Appended, ProducerClaim } from "../log/accept.js";
import { checkExternal, type Head } from "../log/head.js";
import { readableHead } from "../reading.js";
import type { Rooms } from "../rooms.js";
import type { RunKey } from "../store.js";
import { appendSession } from "../transports/append-session.js";

const lineTypes = ["application/x-ndjson", "application/jsonl"];
const appendQuery = z.strictObject({ dialect: dialectParam(runwire.name) });
const places = members({ first_pos: z.number().nullable(), last_pos: z.number() });

export function appendRoutes(rooms: Rooms): readonly Route[] {
  return [
    route({
      method: "POST",
      path: "/v1/agent/runs/:id/events",
      does: "append events as a producer",
      scope: "write",
      query: appendQuery,
      headers: {
        "Producer-Id": "who appends, so that a retry stores once",
        "Producer-Epoch": "which life of that producer; an older one may not write",
        "Producer-Seq": "the number of the first event; each event is the next",
      },
      raw: {
        "application/json": z.array(messageOf(draft)).describe("one batch, all or nothing"),
        "application/x-ndjson": z
          .string()
          .describe("a draft a line: with a Content-Length one batch, in chunks a session"),
      },
      answers: {
        200: {
          does: "stored; a session answers a line per commit",
          content: { ...json(places), "application/x-ndjson": z.string() },
        },
      },
      handle: (call) => append(rooms, call),
    }),
    route({
      method: "POST",
      path: "/v1/agent/runs/:id/heartbeat",
      does: "renew a producer's lease",
      scope: "write",
      body: z.strictObject({}),
      answers: {
        200: {
          does: "renewed",
          content: json(members({ run_id: id, state: z.string(), lease_ms: z.number() })),
        },
      },
      handle: (call) => heartbeat(rooms, call),
    }),
    route({
      method: "GET",
      path: "/v1/agent/runs/:id/producers/:producer",
      does: "the last number stored of a producer",
      scope: "read",
      answers: {
        200: {
          does: "both 0 where it never wrote",
          content: json(members({ producer_id: id, epoch: z.number(), last_producer_seq: z.number() })),
        },
      },
      handle: (call) => producer(rooms, call),
    }),
  ];
}

async function append(rooms: Rooms, call: Call<z.output<typeof appendQuery>>): Promise<Reply | undefined> {
  const { req, run: key } = call;
  const { dialect } = call.query;
  const claim = claimOf(req);
  const { settings } = rooms;
  const lines = lineTypes.includes(checkType(req, lineTypes));
  if (lines && req.headers["content-length"] === undefined) {
    checkExternal(await readableHead(rooms, key));
    await appendSession(rooms, call, dialect, claim);
    return undefined;
  }
  const values = batchValues(await readText(req, settings.batchBytesMax), !lines, settings.lineBytesMax);
  // A member that is undefined is left out of the answer.
  return { status: 200, body: await appendBatch(rooms, key, dialect, values, claim) };
}

/** All or nothing; each value is told with where it stood. */
export async function appendBatch(
  rooms: Rooms,
  key: RunKey,
  dialect: Dialect,
  values: readonly { readonly value: unknown; readonly where: string }[],
  claim: ProducerClaim | undefined,
): Promise<Appended> {
  const { batchEventsMax } = rooms.settings;
  if (values.length === 0) throw new RunwireError("KAI-REQUEST-BODY-0001", "it holds no event");
  if (values.length > batchEventsMax) {
    throw new RunwireError("KAI-REQUEST-SIZE-0001", `a batch may have ${batchEventsMax} events`);
  }
  rooms.quotas.appending(key.tenant, values.length);
  return inTurn(rooms, key, dialect, async () => {
    const read = await draftReader(rooms, key, dialect, claim);
    const drafts = values.flatMap(({ value, where }) => read(value, where));
    return rooms.ingest.append(key, drafts, claim);
  });
}

/**
 * Reads messages and stores what they mean. Where they are read by what the log says before them nobody else's may come
 * between the two: two calls without ids would get the same one.
 */
export function inTurn<T>(rooms: Rooms, key: RunKey, dialect: Dialect, act: () => Promise<T>): Promise<T> {
  return dialect.decoderAfter === undefined ? act() : rooms.turns.take(key.tenant, key.run_id, act);
}

/** Drafts of one JSON value, for a run. The log's own dialect needs no message in between. */
export async function draftReader(
  rooms: Rooms,
  key: RunKey,
  dialect: Dialect,
  claim: ProducerClaim | undefined,
): Promise<ReadDrafts> {
  const { settings: bounds } = rooms;
  const isOwn = dialect.name === runwire.name;
  const read = isOwn ? ownReader(bounds) : foreignReader(await decodes(rooms, key, dialect, claim), bounds);
  // The largest event there can be is refused where it is written anyway.
  if (bounds.eventBytesMax >= limits.eventBytesMax) return read;
  return (value, where) => {
    const drafts = read(value, where);
    for (const { payload } of drafts) {
      if (Buffer.byteLength(JSON.stringify(payload)) <= bounds.eventBytesMax) continue;
      const detail = `${where}: an event may have ${bounds.eventBytesMax} bytes`;
      throw new RunwireError("KAI-REQUEST-SIZE-0001", detail);
    }
    return drafts;
  };
}

/**
 * Messages may mean calls that were opened in a request before. Those of a retry that are stored have done what they do to
 * the log: they are read only to know how many drafts they are, and the first that is new goes on from there.
 */
async function decodes(
  rooms: Rooms,
  key: RunKey,
  dialect: Dialect,
  claim: ProducerClaim | undefined,
): Promise<Decoder["decode"]> {
  if (dialect.decoderAfter === undefined) return dialect.decoder().decode;
  const { views, fullGone, producers } = await readableHead(rooms, key);
  const view = fullGone ? "default" : "full";
  const state = await rooms.encodings.at(key, view, dialect, views[view].pos);
  const [again, fresh] = [dialect.decoderAfter(state), dialect.decoderAfter(state)];
  let stored = claim === undefined ? 0 : storedOf(producers, claim.id) + 1 - claim.seq;
  return (message) => {
    if (stored <= 0) return fresh.decode(message);
    const drafts = again.decode(message);
    stored -= drafts.length;
    return drafts;
  };
}

function storedOf(producers: Head["producers"], id: string): number {
  return (Object.hasOwn(producers, id) ? producers[id]?.seq : undefined) ?? 0;
}

type ReadDrafts = (value: unknown, where: string) => readonly Draft[];

function ownReader(bounds: JsonLimits): ReadDrafts {
  return (value, where) => [parseDraft(value, where, bounds)];
}

function foreignReader(decode: Decoder["decode"], bounds: JsonLimits): ReadDrafts {
  // A message is an event in an envelope, and may say it twice: plainly, and as it is.
  const around = { jsonDepthMax: bounds.jsonDepthMax + 4, jsonKeysMax: bounds.jsonKeysMax * 3 };
  return (value, where) => {
    if (!isObject(value))
      throw new RunwireError("KAI-STREAM-PROTO-0001", `${where}: a message must be a JSON object`);
    // Before it is made a text again, which would turn what overflowed into null and take any depth.
    const unfit = unfitJson(value, around);
    if (unfit !== undefined) throw new RunwireError("KAI-STREAM-PROTO-0001", `${where}: it ${unfit}`);
    return decoded(decode, value, where).map((draft) => parseDraft(draft, where, bounds));
  };
}

function decoded(decode: Decoder["decode"], value: object, where: string): readonly Draft[] {
  try {
    return decode({ data: JSON.stringify(value) });
  } catch (error) {
    throw error instanceof RunwireError ? error.at(where) : error;
  }
}

function claimOf({ headers }: IncomingMessage): ProducerClaim | undefined {
  const id = headers["producer-id"];
  const epoch = headers["producer-epoch"];
  const seq = headers["producer-seq"];
  if (id === undefined && epoch === undefined && seq === undefined) return undefined;
  return checkClaim({ id: String(id ?? ""), epoch: numberIn(epoch ?? "0"), seq: numberIn(seq) });
}

function numberIn(value: string | string[] | undefined): number {
  return /^[0-9]{1,15}$/.test(String(value)) ? Number(value) : Number.NaN;
}

/** Throws 400 where it names nobody, or counts as no producer does: what is stored would be skipped or doubled. */
export function checkClaim(claim: ProducerClaim): ProducerClaim {
  if (!isId(claim.id)) throw badHeader("Producer-Id", "an id");
  if (!isCount(claim.epoch, 0)) throw badHeader("Producer-Epoch", "a whole number from 0");
  if (!isCount(claim.seq, 1)) throw badHeader("Producer-Seq", "a whole number from 1");
  return claim;
}

function isCount(value: number, min: number): boolean {
  return Number.isInteger(value) && value >= min && value < 1e15;
}

function badHeader(name: string, takes: string): RunwireError {
  return badParam(`the header \`${name}\``, `takes ${takes}`);
}

async function heartbeat(rooms: Rooms, { run: key }: Call): Promise<Reply> {
  return { status: 200, body: { run_id: key.run_id, ...(await renewLease(rooms, key)) } };
}

export async function renewLease(
  rooms: Rooms,
  key: RunKey,
): Promise<{ readonly state: RunState | null; readonly lease_ms: number }> {
  const head = await readableHead(rooms, key);
  checkExternal(head);
  const { state, run } = head;
  rooms.store.renew(key);
  return { state, lease_ms: run.lease_ms };
}

async function producer(rooms: Rooms, call: Call): Promise<Reply> {
  const { producers } = await readableHead(rooms, call.run);
  const id = call.param("producer");
  const known = Object.hasOwn(producers, id) ? producers[id] : undefined;
  return {
    status: 200,
    body: { producer_id: id, epoch: known?.epoch ?? 0, last_producer_seq: known?.seq ?? 0 },
  };
}
