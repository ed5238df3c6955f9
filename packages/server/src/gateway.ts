// The one place where the server's rooms are put together.

import { mkdirSync } from "node:fs";
import type { Http2Session } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import { gate } from "./auth/gate.js";
import { credentialsFor } from "./auth/mode.js";
import { countedBlobs } from "./blobs/counted.js";
import { folderBlobs } from "./blobs/folder.js";
import { memoryBus } from "./bus.js";
import { type Clock, systemClock } from "./clock.js";
import { connections } from "./connections.js";
import { accounts } from "./http/account.js";
import type { Route } from "./http/route.js";
import { httpServer } from "./http/server.js";
import { readTls } from "./http/tls.js";
import { hub } from "./hub.js";
import { ingest } from "./ingest.js";
import { metrics } from "./metrics.js";
import { quotas } from "./quotas.js";
import { redactor } from "./redact.js";
import { linesTo, reportTo } from "./report.js";
import { retention } from "./retention.js";
import type { Rooms } from "./rooms.js";
import { accessRoutes } from "./routes/access.js";
import { appendRoutes } from "./routes/append.js";
import { blobRoutes } from "./routes/blobs.js";
import { controlRoutes } from "./routes/control.js";
import { documentRoutes } from "./routes/documents.js";
import { operationRoutes } from "./routes/operations.js";
import { retentionRoutes } from "./routes/retention.js";
import { runRoutes } from "./routes/runs.js";
import { streamRoutes } from "./routes/streams.js";
import {
  checkSettings,
  defaultSettings,
  quotasOf,
  retentionOf,
  type Settings,
  toldSettings,
} from "./settings.js";
import { sqliteStore } from "./stores/sqlite/store.js";
import { transcripts } from "./transcripts.js";
import { webSockets } from "./transports/websocket.js";
import { storeObserver, sweep } from "./trouble.js";
import { version } from "./version.js";

export interface Gateway {
  readonly url: string;
  /** Stops taking connections, lets streams leave and requests finish, and closes the store. */
  close(): Promise<void>;
}

const sweepMs = 1000;
const idleLookMs = 50;

function makeFolder(path: string): void {
  try {
    // Runs hold what people said: they are nobody else's on this machine.
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new Error(
      `${path} cannot be the data folder (${(cause as Error).message}); choose another with --data`,
      {
        cause,
      },
    );
  }
}
/** `clock` is for tests that hold time. */
export async function startGateway(
  given: Partial<Settings> = {},
  clock: Clock = systemClock,
): Promise<Gateway> {
  const settings: Settings = { ...defaultSettings, ...given };
  const { dataFolder, durability, host, port, graceMs } = settings;
  const beganMs = clock.monotonic();
  checkSettings(settings);
  const tls = readTls(settings);
  makeFolder(dataFolder);
  const counted = metrics(version);
  const report = reportTo(linesTo(process.stderr, counted.logLinesDropped), settings.log, clock.now);
  const credentials = credentialsFor(settings, clock, report);
  const observe = storeObserver({ clock, metrics: counted, report });
  const store = sqliteStore({ path: join(dataFolder, "runwire.db"), durability, clock, observe });
  const bus = memoryBus();
  store.onMoved(bus.publish);
  const folded = transcripts(store);
  const entrance = gate({ credentials, grants: store.grants, clock });
  const blobs = countedBlobs(folderBlobs({ path: join(dataFolder, "blobs"), durability }), store);
  store.onUnreferred(blobs.drop);
  const rooms: Rooms = {
    clock,
    store,
    transcripts: folded,
    hub: hub(store, bus),
    blobs,
    ingest: ingest(store, folded, {
      blobs,
      liveRunsMax: settings.liveRunsPerTenantMax,
      ...(settings.redact.length === 0 ? {} : { redact: redactor(settings.redact) }),
    }),
    connections: connections(clock, entrance.isOver),
    retention: retention(store, clock, report, retentionOf(settings)),
    quotas: quotas(quotasOf(settings), clock),
    settings,
    report,
    metrics: counted,
  };
  // The run list's stream is matched before a run of that name.
  const routes: readonly Route[] = [
    ...streamRoutes(rooms, webSockets(rooms)),
    ...runRoutes(rooms),
    ...appendRoutes(rooms),
    ...controlRoutes(rooms),
    ...blobRoutes(rooms),
    ...retentionRoutes(rooms),
    ...accessRoutes(rooms, settings.auth, credentials),
    ...operationRoutes(rooms, settings, () => sockets.size),
  ];
  const server = httpServer({
    routes: [...routes, ...documentRoutes(routes, version)],
    settings,
    tls,
    gate: entrance,
    quotas: rooms.quotas,
    isLeaving: () => rooms.connections.leaving,
    report,
    accounts: accounts(rooms),
  });
  // Node forgets a connection that became a WebSocket; a server that leaves must not.
  const sockets = new Set<Socket>();
  const sessions = new Set<Http2Session>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("session", (session: Http2Session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
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
      .then(() => sweep(rooms))
      .catch((error: unknown) => report("warn", "sweep failed", { error: String(error) }));
  }, sweepMs);

  // Beside the first requests: what is removed is what nobody refers to or holds.
  const cleaning = blobs
    .clean()
    .catch((error: unknown) => report("warn", "cleaning failed", { error: String(error) }));

  const { port: bound } = server.address() as AddressInfo;
  const url = `${tls === null ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${bound}`;
  const runs = store.levels().runsLive;
  const ms = Math.round(clock.monotonic() - beganMs);
  report("info", "started", { version, url, ...toldSettings(settings), runs, ms });
  return {
    url,
    async close() {
      report("info", "leaving", { streams: rooms.connections.count });
      const stopped = new Promise<void>((resolve) => server.close(() => resolve()));
      rooms.connections.leave();
      // Those that become idle later, too: nobody waits for a client's keep-alive.
      const idle = setInterval(() => server.closeIdleConnections?.(), idleLookMs);
      for (const session of sessions) session.close();
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
      credentials?.close();
      blobs.close();
      await cleaning;
      await store.close();
      counted.close();
      report("info", "stopped");
    },
  };
}
