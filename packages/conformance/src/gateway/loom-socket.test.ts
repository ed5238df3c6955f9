// Loom's own WebSocket: runs on one connection, each with its events and exactly one end.

import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { engine, type Tool } from "@runwire/engine";
import { type Facts, loom, validatorOf } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { sqliteStore } from "../../../server/dist/stores/sqlite/store.js";
import { call } from "./calls.js";
import { parseMetrics, total } from "./prometheus-text.js";
import { openReading, type Reading, readAll, streamPath } from "./readers.js";
import { calling, script, scriptedModel } from "./scripted.js";
import { underTest } from "./under-test.js";

const stuck: Tool = {
  name: "stuck",
  description: "waits for its end",
  effect: "read-only",
  input_schema: { type: "object" },
  run: (_input, { signal }) =>
    new Promise((resolve) => signal.addEventListener("abort", () => resolve(null), { once: true })),
};
const danger: Tool = {
  name: "danger",
  description: "cannot be taken back",
  effect: "destructive",
  input_schema: { type: "object" },
  run: async () => ({ text: "done" }),
};

const agent = engine({ modelOf: () => scriptedModel, tools: [stuck, danger], planningGate: "off" });
let lookUpMs = 0;
let readable = Promise.resolve();
const openStore = (options: Parameters<typeof sqliteStore>[0]): ReturnType<typeof sqliteStore> => {
  const store = sqliteStore(options);
  const head: typeof store.head = (key) => sleep(lookUpMs).then(() => store.head(key));
  const read: typeof store.read = (...asked) => readable.then(() => store.read(...asked));
  const session: typeof store.session = (...asked) =>
    asked[1] === "sess_broken" ? Promise.reject(new TypeError("not foreseen")) : store.session(...asked);
  return { ...store, head, read, session };
};
const server = underTest((settings: object) => startGateway(settings, undefined, agent, openStore), {});
const open = new Set<Reading>();

afterEach(() => {
  for (const reading of open) reading.stop();
  open.clear();
});

async function connect(): Promise<Reading> {
  const reading = await openReading("websocket", server.url, "/v1/loom");
  open.add(reading);
  return reading;
}

const said = (reading: Reading, id?: string): readonly Facts[] =>
  (reading.events as unknown as readonly Facts[]).filter((message) => id === undefined || message.id === id);
const endsOf = (reading: Reading, id: string): readonly Facts[] =>
  said(reading, id).filter(({ type }) => type === "run_end" || type === "error");
const hasEnded =
  (id: string) =>
  (reading: Reading): boolean =>
    endsOf(reading, id).length > 0;

describe("Loom's WebSocket", () => {
  it("ends what it says of a bug with the id under which the log has the rest", async () => {
    const socket = await openReading("websocket", server.url, "/v1/loom", { "X-Request-Id": "find-me" });
    open.add(socket);
    socket.send({ type: "run", id: "a", message: "[]", thread_id: "sess_broken" });
    await socket.until(hasEnded("a"));
    const error = expect.stringMatching(/find-me$/) as string;
    expect(endsOf(socket, "a")).toEqual([{ type: "error", id: "a", error, code: "KAI-SERVER-BUG-0001" }]);
  });

  it("tells a run's events in order and then its one end, which is what any reader of the run hears [RW-LOOM-5]", async () => {
    const socket = await connect();
    socket.send({ type: "run", id: "a", message: script({ text: "Hello." }), agent: "react" });
    await socket.until(hasEnded("a"));
    const events = said(socket, "a").filter(({ type }) => type === "run_stream_event");
    const [end] = endsOf(socket, "a");
    const lines = events.map(({ event }) => JSON.stringify(event));
    const { run_id } = (events[0] as Facts).event as Facts;
    const { type: _, id: __, ...reply } = end as Facts;
    const stream = await readAll(
      "ndjson",
      server.url,
      streamPath({ run_id: String(run_id), dialect: "loom" }),
    );
    expect([...lines, JSON.stringify(reply)]).toEqual(stream.heard.map(({ data }) => data));
    expect(endsOf(socket, "a")).toHaveLength(1);
    const validator = validatorOf(loom as never);
    expect([...lines, JSON.stringify(reply)].flatMap((line) => validator.check(line))).toEqual([]);
  });

  it("tells several at once, each under its id, and goes on after an error [RW-LOOM-5]", async () => {
    const socket = await connect();
    for (const id of ["a", "b", "c"]) socket.send({ type: "run", id, message: script({ text: id }) });
    socket.send({ type: "run", id: "d" });
    socket.send("no object");
    socket.send({ type: "tools_list" });
    socket.send({ type: "ping", id: "p" });
    await socket.until((reading) => ["a", "b", "c"].every((id) => hasEnded(id)(reading)));
    for (const id of ["a", "b", "c"]) expect(endsOf(socket, id)).toMatchObject([{ type: "run_end" }]);
    expect(said(socket, "p")).toEqual([{ type: "pong", id: "p" }]);
    expect(endsOf(socket, "d")).toMatchObject([{ type: "error" }]);
    expect(said(socket).filter(({ type, id }) => type === "error" && id === null)).toHaveLength(2);
  });

  it("cancels a run in the middle of a tool, and the run ends once [RW-LOOM-5]", async () => {
    const socket = await connect();
    socket.send({ type: "run", id: "a", message: calling("stuck") });
    await socket.until((reading) =>
      said(reading, "a").some(({ event }) => (event as Facts)?.type === "tool_start"),
    );
    socket.send({ type: "cancel_run", id: "a" });
    await socket.until(hasEnded("a"));
    expect(said(socket, "a").filter(({ type }) => type === "cancel_run_ack")).toHaveLength(1);
    expect(endsOf(socket, "a")).toMatchObject([{ type: "run_end", stop_reason: "cancelled" }]);
  });

  it("takes the answer to an approval [RW-LOOM-5]", async () => {
    const socket = await connect();
    for (const [id, approved] of [
      ["yes", true],
      ["no", false],
    ] as const) {
      socket.send({ type: "run", id, message: calling("danger"), approvals: "destructive" });
      const asks = (reading: Reading): Facts | undefined =>
        said(reading, id).find(({ event }) => (event as Facts)?.type === "tool_approval")?.event as Facts;
      await socket.until((reading) => asks(reading) !== undefined);
      socket.send({ type: "tool_approval_response", call_id: asks(socket)?.call_id, approved });
      await socket.until(hasEnded(id));
      const ends = said(socket, id).flatMap(({ event }) =>
        (event as Facts)?.type === "tool_end" ? [event] : [],
      );
      expect(ends).toMatchObject([{ is_error: !approved }]);
    }
  });

  it("takes the answer to an approval of a child [RW-LOOM-5]", async () => {
    const socket = await connect();
    socket.send({ type: "run", id: "a", message: calling("stuck"), approvals: "destructive" });
    const event = (type: string): Facts | undefined =>
      said(socket, "a").find((message) => (message.event as Facts)?.type === type)?.event as Facts;
    await socket.until(() => event("tool_start") !== undefined);
    const children = `/v1/agent/runs/${event("run_start")?.run_id}/children`;
    await call(server.url, "POST", children, { prompt: calling("danger") });
    await socket.until(() => event("tool_approval") !== undefined);
    socket.send({ type: "tool_approval_response", call_id: event("tool_approval")?.call_id, approved: true });
    await socket.until(() => event("tool_end") !== undefined);
    expect(event("tool_end")).toMatchObject({ call_id: event("tool_approval")?.call_id, is_error: false });
    socket.send({ type: "cancel_run", id: "a" });
    await socket.until(hasEnded("a"));
  });

  it("follows no run for a client that left while it began", async () => {
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/loom`);
    await once(socket, "open");
    const counted = async (name: string): Promise<number> => {
      const { text } = await call(server.url, "GET", "/metrics");
      return total(parseMetrics(text), name);
    };
    const before = await counted("runwire_streams_opened_total");
    const { _socket: wire } = socket as unknown as { readonly _socket: Socket };
    lookUpMs = 200;
    wire.cork();
    socket.send(JSON.stringify({ type: "run", id: "a", message: calling("stuck") }));
    socket.close();
    wire.uncork();
    await once(socket, "close");
    await expect.poll(() => counted("runwire_streams_opened_total")).toBeGreaterThan(before);
    lookUpMs = 0;
    await expect.poll(() => counted("runwire_readers"), { timeout: 5000 }).toBe(0);
  });

  it("tells whoever is behind that its run was erased, and goes on [RW-LOOM-5]", async () => {
    const socket = await connect();
    socket.send({ type: "run", id: "a", message: calling("stuck") });
    await socket.until((reading) =>
      said(reading, "a").some(({ event }) => (event as Facts)?.type === "tool_start"),
    );
    const { run_id } = (said(socket, "a")[0] as Facts).event as Facts;
    let read = (): void => {};
    readable = new Promise((resolve) => {
      read = resolve;
    });
    expect((await call(server.url, "DELETE", `/v1/agent/runs/${run_id}`)).status).toBe(204);
    read();
    socket.send({ type: "ping", id: "p" });
    await socket.until((reading) => said(reading, "p").length > 0);
    await expect.poll(() => endsOf(socket, "a")).toMatchObject([{ code: "KAI-STREAM-CONN-0002" }]);
    socket.send({ type: "run", id: "a", message: script({ text: "Hello." }) });
    await socket.until((reading) => endsOf(reading, "a").length > 1);
    expect(endsOf(socket, "a")[1]).toMatchObject({ type: "run_end" });
  });

  it("leaves runs to themselves when it is closed [RW-LOOM-5]", async () => {
    const socket = await connect();
    socket.send({ type: "run", id: "a", message: calling("stuck") });
    await socket.until((reading) => said(reading, "a").length > 0);
    const { run_id } = (said(socket, "a")[0] as Facts).event as Facts;
    socket.stop();
    await socket.ended;
    expect((await call(server.url, "GET", `/v1/agent/runs/${run_id}`)).body.state).toBe("running");
  });
});
