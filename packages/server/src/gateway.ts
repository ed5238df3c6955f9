// The one place where the server's rooms are put together.

import { mkdirSync } from "node:fs";
import type { AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import { countedBlobs } from "./blobs/counted.js";
import { folderBlobs } from "./blobs/folder.js";
import { memoryBus } from "./bus.js";
import { type Clock, systemClock } from "./clock.js";
import { connections } from "./connections.js";
import { httpServer } from "./http/server.js";
import { hub } from "./hub.js";
import { ingest } from "./ingest.js";
import { reportTo } from "./report.js";
import type { Rooms } from "./rooms.js";
import { appendRoutes } from "./routes/append.js";
import { blobRoutes } from "./routes/blobs.js";
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

function makeFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true });
  } catch (cause) {
    throw new Error(
      `${path} cannot be the data folder (${(cause as Error).message}); choose another with --data`,
      {
        cause,
      },
    );
  }
}
const idleLookMs = 50;

/** `clock` is for tests that hold time. */
export async function startGateway(
  given: Partial<Settings> = {},
  clock: Clock = systemClock,
): Promise<Gateway> {
  const settings: Settings = { ...defaultSettings, ...given };
  const { dataFolder, durability, host, port, graceMs } = settings;
  makeFolder(dataFolder);
  const store = sqliteStore({ path: join(dataFolder, "runwire.db"), durability, clock });
  const bus = memoryBus();
  store.onMoved(bus.publish);
  const folded = transcripts(store);
  const blobs = countedBlobs(folderBlobs({ path: join(dataFolder, "blobs"), durability }), store);
  store.onUnreferred(blobs.drop);
  const rooms: Rooms = {
    clock,
    store,
    transcripts: folded,
    hub: hub(store, bus),
    blobs,
    ingest: ingest(store, folded, { blobs }),
    connections: connections(clock),
    report: reportTo((line) => process.stderr.write(line), settings.log, clock.now),
  };
  const server = httpServer({
    // The run list's stream is matched before a run of that name.
    routes: [
      ...streamRoutes(rooms),
      ...runRoutes(rooms),
      ...appendRoutes(rooms),
      ...controlRoutes(rooms),
      ...blobRoutes(rooms),
      ...operationRoutes(rooms, settings),
    ],
    sockets: webSockets(rooms),
    isLeaving: () => rooms.connections.leaving,
    report: rooms.report,
  });
  // Node forgets a connection that became a WebSocket; a server that leaves must not.
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const taken = `port ${port} on ${host} is taken; choose another with --port, or 0 for a free one`;
      reject(error.code === "EADDRINUSE" ? new Error(taken, { cause: error }) : error);
    });
    server.listen(port, host, resolve);
  }).catch(async (error: unknown) => {
    await store.close();
    throw error;
  });

  let sweeping: Promise<void> = Promise.resolve();
  const sweeper = setInterval(() => {
    sweeping = sweeping
      .then(() => rooms.ingest.sweep())
      .then(() => store.prune())
      .catch((error: unknown) => rooms.report("warn", "sweep failed", { error: String(error) }));
  }, sweepMs);

  // Beside the first requests: what is removed is what nobody refers to or holds.
  const cleaning = blobs
    .clean()
    .catch((error: unknown) => rooms.report("warn", "cleaning failed", { error: String(error) }));

  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}`,
    async close() {
      const stopped = new Promise<void>((resolve) => server.close(() => resolve()));
      rooms.connections.leave();
      // Those that become idle later, too: nobody waits for a client's keep-alive.
      const idle = setInterval(() => server.closeIdleConnections(), idleLookMs);
      const grace = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, graceMs);
      await stopped;
      clearInterval(idle);
      clearTimeout(grace);
      clearInterval(sweeper);
      await sweeping;
      rooms.ingest.close();
      rooms.connections.close();
      blobs.close();
      await cleaning;
      await store.close();
    },
  };
}
