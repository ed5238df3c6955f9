// The one place where the server's rooms are put together.

import { mkdirSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { memoryBus } from "./bus.js";
import { systemClock } from "./clock.js";
import { connections } from "./connections.js";
import { httpServer } from "./http/server.js";
import { hub } from "./hub.js";
import { ingest } from "./ingest.js";
import type { Rooms } from "./rooms.js";
import { appendRoutes } from "./routes/append.js";
import { controlRoutes } from "./routes/control.js";
import { operationRoutes } from "./routes/operations.js";
import { runRoutes } from "./routes/runs.js";
import { streamRoutes } from "./routes/streams.js";
import { defaultSettings, type Settings } from "./settings.js";
import { sqliteStore } from "./stores/sqlite/store.js";
import { transcripts } from "./transcripts.js";
import { webSockets } from "./transports/websocket.js";

export interface Gateway {
  readonly url: string;
  /** Stops taking connections, lets streams leave and requests finish, and closes the store. */
  close(): Promise<void>;
}

const sweepMs = 1000;

export async function startGateway(given: Partial<Settings> = {}): Promise<Gateway> {
  const settings: Settings = { ...defaultSettings, ...given };
  const { dataFolder, durability, host, port, graceMs } = settings;
  mkdirSync(dataFolder, { recursive: true });
  const clock = systemClock;
  const store = sqliteStore({ path: join(dataFolder, "runwire.db"), durability, clock });
  const bus = memoryBus();
  store.onMoved(({ log }) => bus.publish(log));
  const folded = transcripts(store);
  const rooms: Rooms = {
    clock,
    store,
    transcripts: folded,
    hub: hub(store, bus),
    ingest: ingest(store, folded),
    connections: connections(clock),
  };
  const server = httpServer({
    // The run list's stream is matched before a run of that name.
    routes: [
      ...streamRoutes(rooms),
      ...runRoutes(rooms),
      ...appendRoutes(rooms),
      ...controlRoutes(rooms),
      ...operationRoutes(rooms, settings),
    ],
    sockets: webSockets(rooms),
    isLeaving: () => rooms.connections.leaving,
    report: (error, request) =>
      process.stderr.write(`runwire: bug in ${request}: ${(error as Error)?.stack ?? error}\n`),
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  }).catch(async (error: unknown) => {
    await store.close();
    throw error;
  });

  let sweeping: Promise<void> = Promise.resolve();
  const sweeper = setInterval(() => {
    sweeping = sweeping.then(() => rooms.ingest.sweep()).catch(() => {});
  }, sweepMs);

  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}`,
    async close() {
      const stopped = new Promise<void>((resolve) => server.close(() => resolve()));
      rooms.connections.leave();
      server.closeIdleConnections();
      const grace = setTimeout(() => server.closeAllConnections(), graceMs);
      await stopped;
      clearTimeout(grace);
      clearInterval(sweeper);
      await sweeping;
      rooms.ingest.close();
      rooms.connections.close();
      await store.close();
    },
  };
}
