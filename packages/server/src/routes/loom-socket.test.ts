import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { StoredEvent } from "@runwire/protocol";
import { expect, it } from "vitest";
import { WebSocket } from "ws";
import type { Upgrade } from "../http/route.js";
import type { Followed, Listener } from "../hub.js";
import { noWeight } from "../range.js";
import type { Rooms } from "../rooms.js";
import type { RunKey } from "../store.js";
import { websocketText } from "../wire.js";
import { loomSocket } from "./loom-socket.js";

/** More than both ends of a connection hold. */
const rangesMax = 800;
const rangeBytes = 64 * 1024;

/** Logs that have nothing until they are told to, and from then on as much as anybody takes at once. */
function talkative() {
  const listeners: Listener[] = [];
  const ends: number[] = [];
  const follow = async (_key: RunKey, _view: unknown, listener: Listener): Promise<Followed> => {
    const name = listeners.length === 0 ? "busy" : "quiet";
    const at = listeners.push(listener) - 1;
    const bytes = websocketText(JSON.stringify({ name, said: "x".repeat(rangeBytes) }));
    const said = { bytes, messages: 1, state: { said: 0 }, stateBytes: 0 };
    const encoded = new Map([[`loom-socket/${name}`, said]]);
    const rangeAfter = (after: number) => ({
      ...{ after, to: after + 1, stretch: undefined as never, terminal: false, weights: noWeight, encoded },
      last: { pos: after + 1 } as StoredEvent,
    });
    const next: Followed["next"] = (after) => (after < (ends[at] ?? 0) ? rangeAfter(after) : undefined);
    return { end: 0, weights: noWeight, next, leave() {} };
  };
  return {
    follow,
    followed: () => listeners.length,
    say(run: number, ranges: number) {
      ends[run] = ranges;
      listeners[run]?.moved();
    },
  };
}

function roomsOf(follow: unknown): Rooms {
  let runs = 0;
  return {
    hub: { follow },
    agent: { planningGate: () => "off", check: async () => {}, take() {} },
    ingest: { create: async () => ({ run_id: `run_${runs++}`, session_id: "ses", state: "running" }) },
    clock: { now: () => 0, monotonic: () => 0 },
    connections: { leaving: false, add: () => () => {} },
    quotas: { askingLater: async () => {} },
    metrics: { readerOpened: () => ({ sent() {}, dropped() {}, closed() {} }) },
    report() {},
  } as unknown as Rooms;
}

it("runs of one connection take turns where its client reads more slowly than they speak", async () => {
  const logs = talkative();
  const open = loomSocket(roomsOf(logs.follow));
  const caller = { scopes: new Set(["read", "write"]) };
  const server = createServer().on("upgrade", (req, socket, head) => {
    const upgrade = { req, socket, head, caller, tenant: "acme", requestId: "r", accepted() {} };
    void open(upgrade as unknown as Upgrade);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  await once(client, "open");
  for (const id of ["busy", "quiet"]) client.send(JSON.stringify({ type: "run", id, message: "go" }));
  await expect.poll(logs.followed).toBe(2);
  client.pause();
  logs.say(0, rangesMax);
  logs.say(1, 1);
  const heard: string[] = [];
  const isOver = new Promise<void>((resolve) => {
    client.on("message", (data) => {
      heard.push((JSON.parse(String(data)) as { readonly name: string }).name);
      if (heard.length > rangesMax) resolve();
    });
  });
  client.resume();
  await isOver;
  expect(heard.filter((name) => name === "busy")).toHaveLength(rangesMax);
  expect(heard.indexOf("quiet")).toBeLessThan(rangesMax);
  client.terminate();
  server.close();
});
