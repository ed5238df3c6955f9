// The one place where the server's rooms are put together.

import { join } from "node:path";
import type { Duplex } from "node:stream";
import type { MakeAgent } from "./agent.js";
import { gate } from "./auth/gate.js";
import { credentialsFor } from "./auth/mode.js";
import { countedBlobs } from "./blobs/counted.js";
import { type FolderOptions, folderBlobs } from "./blobs/folder.js";
import type { Blobs } from "./blobs/store.js";
import { wholeBlob } from "./blobs/whole.js";
import { memoryBus } from "./bus.js";
import { type Clock, systemClock } from "./clock.js";
import { connections } from "./connections.js";
import { type Embedded, embedded } from "./embedded.js";
import { encodings } from "./encodings.js";
import { makeFolder } from "./folder.js";
import { accounts } from "./http/account.js";
import { listen } from "./http/listening.js";
import type { Route } from "./http/route.js";
import { httpServer } from "./http/server.js";
import { readTls } from "./http/tls.js";
import { hub } from "./hub.js";
import { ingest } from "./ingest.js";
import { metrics } from "./metrics.js";
import { quotas } from "./quotas.js";
import { follower } from "./reading.js";
import { redactor } from "./redact.js";
import { linesTo, reportTo } from "./report.js";
import { retention } from "./retention.js";
import type { Rooms } from "./rooms.js";
import { accessRoutes } from "./routes/access.js";
import { appendRoutes } from "./routes/append.js";
import { approvalRoutes } from "./routes/approvals.js";
import { blobRoutes } from "./routes/blobs.js";
import { checkpointRoutes } from "./routes/checkpoints.js";
import { childRoutes } from "./routes/children.js";
import { controlRoutes } from "./routes/control.js";
import { documentRoutes } from "./routes/documents.js";
import { evidenceRoutes } from "./routes/evidence.js";
import { forkRoutes } from "./routes/fork.js";
import { inboxRoutes } from "./routes/inbox.js";
import { loomRoutes } from "./routes/loom.js";
import { operationRoutes } from "./routes/operations.js";
import { pageRoutes } from "./routes/pages.js";
import { retentionRoutes } from "./routes/retention.js";
import { runRoutes } from "./routes/runs.js";
import { sessionRoutes } from "./routes/sessions.js";
import { streamRoutes } from "./routes/streams.js";
import { traceRoutes } from "./routes/trace.js";
import {
  checkpointLimitsOf,
  checkSettings,
  defaultSettings,
  quotasOf,
  retentionOf,
  type Settings,
  toldSettings,
} from "./settings.js";
import { snapshots } from "./snapshots.js";
import { LeftBehind, type RunKey, type Store } from "./store.js";
import { type SqliteOptions, sqliteStore } from "./stores/sqlite/store.js";
import { startSweeper } from "./sweeper.js";
import { transcripts } from "./transcripts.js";
import { webSockets } from "./transports/websocket.js";
import { seldom, storeObserver } from "./trouble.js";
import { turns } from "./turns.js";
import { version } from "./version.js";

/** A running server; its process can write runs and follow them without a socket. */
export interface Gateway extends Embedded {
  readonly url: string;
  /** Serves a connection that did not come through the door. */
  take(connection: Duplex): void;
  /** Stops taking connections, lets streams leave and requests finish, and closes the store. */
  close(): Promise<void>;
}

/** Runs hold what people said. */
function makeDataFolder(path: string): void {
  try {
    makeFolder(path);
  } catch (cause) {
    const why = (cause as Error).message;
    throw new Error(`${path} cannot be the data folder (${why}); choose another with --data`, { cause });
  }
}

/** `clock`, `openStore` and `openBlobs` are for tests that hold time and the disk; `makeAgent` brings the built-in agent. */
export async function startGateway(
  given: Partial<Settings> = {},
  clock: Clock = systemClock,
  makeAgent?: MakeAgent,
  openStore: (options: SqliteOptions) => Store = sqliteStore,
  openBlobs: (options: FolderOptions) => Blobs = folderBlobs,
): Promise<Gateway> {
  const open = openParts();
  try {
    return await startOn(open, { ...defaultSettings, ...given }, clock, makeAgent, openStore, openBlobs);
  } catch (error) {
    await open.close();
    throw error;
  }
}

/** What a server holds while it runs. Whatever was opened last is closed first. */
interface OpenParts {
  add(close: () => unknown): void;
  close(): Promise<void>;
}

function openParts(): OpenParts {
  const closers: (() => unknown)[] = [];
  return {
    add: (close) => void closers.unshift(close),
    async close() {
      for (const close of closers.splice(0)) await close();
    },
  };
}

async function startOn(
  open: OpenParts,
  settings: Settings,
  clock: Clock,
  makeAgent: MakeAgent | undefined,
  openStore: (options: SqliteOptions) => Store,
  openBlobs: (options: FolderOptions) => Blobs,
): Promise<Gateway> {
  const { dataFolder, durability, host, port, graceMs } = settings;
  const beganMs = clock.monotonic();
  checkSettings(settings);
  const tls = readTls(settings);
  makeDataFolder(dataFolder);
  const counted = metrics(version);
  open.add(counted.close);
  const report = reportTo(linesTo(process.stderr, counted.logLinesDropped), settings.log, clock.now);
  const credentials = credentialsFor(settings, clock, report);
  const observe = storeObserver({ clock, metrics: counted, report });
  if (credentials !== null) open.add(credentials.close);
  const store = openStore({ path: join(dataFolder, "runwire.db"), durability, clock, observe });
  open.add(store.close);
  const bus = memoryBus();
  store.onMoved(bus.publish);
  const folded = transcripts(store);
  const entrance = gate({ credentials, store, clock });
  const blobs = countedBlobs(openBlobs({ path: join(dataFolder, "blobs"), durability }), store);
  open.add(blobs.close);
  store.onUnreferred((tenant, refs) => blobs.drop(tenant, refs).catch(leftBehind));
  const writer = ingest(store, folded, {
    blobs,
    liveRunsMax: settings.liveRunsPerTenantMax,
    ...(settings.redact.length === 0 ? {} : { redact: redactor(settings.redact) }),
  });
  open.add(writer.close);
  const agent = makeAgent?.({
    clock,
    writer: { append: writer.appendAsAgent, spawn: writer.spawn, change: writer.change },
    head: store.head,
    runs: store.listRuns,
    endedMs: store.endedMs,
    follow: follower(store, bus),
    blob: (tenant, ref) => wholeBlob(blobs, tenant, ref),
    allowances: store.allowances,
    dataFolder,
    durability,
    checkpointLimits: checkpointLimitsOf(settings),
    redacts: settings.redact.length > 0,
    report,
  });
  if (agent !== undefined) open.add(agent.close);
  const followed = hub(store, bus);
  const marked = encodings(store);
  const begun = snapshots({ transcripts: folded, encodings: marked, clock });
  const forget = (roots: readonly RunKey[]): void => {
    for (const tenant of new Set(roots.map((root) => root.tenant))) {
      followed.forget(tenant);
      marked.forget(tenant);
      begun.forget(tenant);
    }
  };
  store.onFullDropped(forget);
  store.onErased(async (roots) => {
    forget(roots);
    await agent?.forget(roots).catch(leftBehind);
  });
  const rooms: Rooms = {
    clock,
    store,
    transcripts: folded,
    snapshots: begun,
    encodings: marked,
    turns: turns(),
    hub: followed,
    blobs,
    ingest: writer,
    agent,
    connections: connections(clock, entrance.isOver),
    retention: retention(store, clock, report, retentionOf(settings)),
    quotas: quotas(quotasOf(settings), clock),
    settings,
    report,
    metrics: counted,
  };
  open.add(rooms.connections.close);
  // The run list's stream is matched before a run of that name.
  const routes: readonly Route[] = [
    ...streamRoutes(rooms, webSockets(rooms)),
    ...inboxRoutes(rooms),
    ...runRoutes(rooms),
    ...pageRoutes(rooms),
    ...childRoutes(rooms),
    ...traceRoutes(rooms),
    ...evidenceRoutes(rooms),
    ...checkpointRoutes(rooms),
    ...forkRoutes(rooms),
    ...sessionRoutes(rooms),
    ...appendRoutes(rooms),
    ...controlRoutes(rooms),
    ...approvalRoutes(rooms),
    ...blobRoutes(rooms),
    ...loomRoutes(rooms),
    ...retentionRoutes(rooms),
    ...accessRoutes(rooms, settings.auth, credentials),
    ...operationRoutes(rooms, settings, () => door.connections),
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
  const tellSeldom = seldom(rooms);
  const door = await listen(server, host, port, (error) => tellSeldom("connection not taken", error));

  for (const run of await store.liveRuns()) if (!run.external) agent?.take(run);

  const sweeper = startSweeper(rooms);

  // Beside the first requests: what is removed is what nobody refers to or holds.
  const cleaning = blobs
    .clean()
    .catch((error: unknown) => report("warn", "cleaning failed", { error: String(error) }));

  const name = host.includes(":") ? `[${host}]` : host;
  const url = `${tls === null ? "http" : "https"}://${name}:${door.port}`;
  const runs = store.levels().runsLive;
  const ms = Math.round(clock.monotonic() - beganMs);
  if (tls !== null && tls.endsMs <= clock.now())
    report("warn", "certificate has ended", { ended: new Date(tls.endsMs).toISOString() });
  report("info", "started", { version, url, ...toldSettings(settings), runs, ms });

  return {
    url,
    ...embedded(rooms),
    take: (connection) => void server.emit("connection", connection),
    async close() {
      report("info", "leaving", { streams: rooms.connections.count });
      const swept = sweeper.stop();
      rooms.connections.leave();
      await door.close(graceMs);
      await swept;
      blobs.close();
      await cleaning;
      await open.close();
      report("info", "stopped");
    },
  };
}

function leftBehind(cause: unknown): never {
  throw new LeftBehind(cause);
}
