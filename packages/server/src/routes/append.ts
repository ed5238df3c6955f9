// Appending as a producer: a batch (JSON array, or NDJSON of a known length) is all or nothing; NDJSON in
// chunks is a session, committed as it comes.

import type { IncomingMessage } from "node:http";
import {
  type Dialect,
  type Draft,
  isId,
  limits,
  parseDraft,
  RunwireError,
  runwire,
  unfitJson,
} from "@runwire/protocol";
import { batchValues, readObject, readText } from "../http/body.js";
import { onlyMembers } from "../http/members.js";
import { dialectOf } from "../http/query.js";
import type { Call, Reply, Route } from "../http/route.js";
import type { ProducerClaim } from "../ingest.js";
import type { Rooms } from "../rooms.js";
import { appendSession } from "../transports/append-session.js";
import { readableHead } from "../transports/open.js";

export function appendRoutes(rooms: Rooms): readonly Route[] {
  return [
    {
      method: "POST",
      path: "/v1/agent/runs/:id/events",
      does: "append events as a producer",
      handle: (call) => append(rooms, call),
    },
    {
      method: "POST",
      path: "/v1/agent/runs/:id/heartbeat",
      does: "renew a producer's lease",
      handle: (call) => heartbeat(rooms, call),
    },
    {
      method: "GET",
      path: "/v1/agent/runs/:id/producers/:producer",
      does: "the last number stored of a producer",
      handle: (call) => producer(rooms, call),
    },
  ];
}

async function append(rooms: Rooms, call: Call): Promise<Reply | undefined> {
  const { req, query, run: key } = call;
  const dialect = dialectOf(query, runwire.name);
  const claim = claimOf(req);
  const type = (req.headers["content-type"] ?? "application/json").split(";", 1)[0]?.trim();
  const lines = type === "application/x-ndjson" || type === "application/jsonl";
  // What curl sends unless told otherwise is taken for JSON too.
  if (!lines && type !== "application/json" && type !== "application/x-www-form-urlencoded")
    throw new RunwireError("KAI-REQUEST-TYPE-0001", String(type));
  if (lines && req.headers["content-length"] === undefined) {
    await readableHead(rooms, key);
    await appendSession(rooms, call, dialect, claim);
    return undefined;
  }
  const values = batchValues(await readText(req, limits.batchBytesMax), !lines);
  if (values.length === 0) throw new RunwireError("KAI-REQUEST-BODY-0001", "it holds no event");
  if (values.length > limits.batchEventsMax) {
    throw new RunwireError("KAI-REQUEST-SIZE-0001", `a batch may have ${limits.batchEventsMax} events`);
  }
  const read = draftReader(dialect);
  const drafts = values.flatMap(({ value, where }) => read(value, where));
  const { last_producer_seq, ...appended } = await rooms.ingest.append(key, drafts, claim);
  return {
    status: 200,
    body: last_producer_seq === undefined ? appended : { ...appended, last_producer_seq },
  };
}

/** Drafts of one JSON value. The log's own dialect needs no message in between. */
export function draftReader(dialect: Dialect): (value: unknown, where: string) => readonly Draft[] {
  if (dialect.name === runwire.name) return (value, where) => [parseDraft(value, where)];
  const decoder = dialect.decoder();
  return (value, where) => {
    // Before it is made a text again, which would turn what overflowed into null and take any depth.
    const unfit = Object.values(value ?? {})
      .map(unfitJson)
      .find((found) => found !== undefined);
    if (unfit !== undefined) throw new RunwireError("KAI-STREAM-PROTO-0001", `${where}: it ${unfit}`);
    try {
      return decoder.decode({ data: JSON.stringify(value) });
    } catch (error) {
      throw error instanceof RunwireError ? error.at(where) : error;
    }
  };
}

function claimOf({ headers }: IncomingMessage): ProducerClaim | undefined {
  const id = headers["producer-id"];
  const epoch = headers["producer-epoch"];
  const seq = headers["producer-seq"];
  if (id === undefined && epoch === undefined && seq === undefined) return undefined;
  if (!isId(id)) throw badHeader("Producer-Id", "an id");
  return { id, epoch: whole("Producer-Epoch", epoch ?? "0", 0), seq: whole("Producer-Seq", seq, 1) };
}

function whole(name: string, value: string | string[] | undefined, min: number): number {
  if (typeof value !== "string" || !/^[0-9]{1,15}$/.test(value) || Number(value) < min) {
    throw badHeader(name, `a whole number from ${min}`);
  }
  return Number(value);
}

function badHeader(name: string, takes: string): RunwireError {
  return new RunwireError("KAI-STREAM-PARAM-0001", `the header \`${name}\` takes ${takes}`);
}

async function heartbeat(rooms: Rooms, { req, run: key }: Call): Promise<Reply> {
  onlyMembers(await readObject(req), []);
  const { state, run } = await readableHead(rooms, key);
  rooms.store.renew(key);
  return { status: 200, body: { run_id: key.run_id, state, lease_ms: run.lease_ms } };
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
