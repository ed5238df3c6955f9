// A process that is meant to die: it appends events whose output is spilled, and prints a line for each blob that was
// stored and each append that was answered. Whoever kills it holds the data folder to those lines.
//
//   node crash-spiller.js <server module> <folder> <appends> <"hang" to stop between blob and commit>

import { createHash } from "node:crypto";
import { join } from "node:path";
import { limits } from "@runwire/protocol";
import type { ServerModule } from "./suites/store/server-module.js";
import { asked } from "./suites/store/trial.js";
import type { IngestUnderTest, StoreUnderTest } from "./suites/store/under-test.js";

export type Line =
  | { readonly put: string }
  | { readonly answered: string; readonly run_id: string }
  | { readonly refused: string };

interface BlobsUnderTest {
  put(key: { readonly tenant: string; readonly ref: string }, content: Uint8Array): Promise<void>;
}

interface SpillingServer extends Omit<ServerModule, "ingest"> {
  folderBlobs(options: { readonly path: string; readonly durability: "fsync" | "os" }): BlobsUnderTest;
  countedBlobs(blobs: BlobsUnderTest, store: StoreUnderTest): unknown;
  ingest(store: StoreUnderTest, transcripts: unknown, options: { readonly blobs: unknown }): IngestUnderTest;
}

const tenant = "acme";
const newRun = { ...asked(24 * 60 * 60 * 1000), messages: [] };

const [serverPath = "", folder = "", appends = "1", hang] = process.argv.slice(2);
const server = (await import(serverPath)) as SpillingServer;
const { systemClock: clock, sqliteStore } = server;
const path = join(folder, "runwire.db");
const store = sqliteStore({ path, durability: "fsync", hotEventsMax: 1000, clock });
const inFolder = server.folderBlobs({ path: join(folder, "blobs"), durability: "fsync" });
const told: BlobsUnderTest = {
  ...inFolder,
  async put(key, content) {
    await inFolder.put(key, content);
    tell({ put: key.ref });
    if (hang !== undefined) await new Promise(() => setInterval(() => {}, 1000));
  },
};
const ingest = server.ingest(store, server.transcripts(store), { blobs: server.countedBlobs(told, store) });
const { run_id } = await ingest.create(tenant, newRun);

for (let n = 0; n < Number(appends); n++) {
  const output = `${process.pid} ${n} `.padEnd(limits.memberBytesMax, ".");
  const ref = `blob_${createHash("sha256").update(output).digest("hex")}`;
  const end = { type: "tool.end" as const, payload: { call_id: `call_${n}`, ok: true, output } };
  await ingest.append({ tenant, run_id }, [end]).then(
    () => tell({ answered: ref, run_id }),
    (error: { code?: string }) => tell({ refused: error.code ?? String(error) }),
  );
}
ingest.close();
await store.close();

function tell(line: Line): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
