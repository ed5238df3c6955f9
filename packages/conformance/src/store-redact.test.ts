// What must not be stored is in no file, whoever wrote it.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Draft, type Facts, limits } from "@runwire/protocol";
import * as server from "@runwire/server";
import { expect, it } from "vitest";
import { codeOf } from "./suites/store/trial.js";

it("a redacted value is in no file, whoever wrote it, and every event says what it lacks [RW-REDACT-2]", async () => {
  const folder = mkdtempSync(join(tmpdir(), "runwire-redact-"));
  const clock = server.systemClock;
  const store = server.sqliteStore({ path: join(folder, "runwire.db"), durability: "os", clock });
  const blobs = server.countedBlobs(
    server.folderBlobs({ path: join(folder, "blobs"), durability: "os" }),
    store,
  );
  const redact = server.redactor(["*secret*"]);
  const ingest = server.ingest(store, server.transcripts(store), { blobs, redact });
  const secret = "swordfish";
  const { run_id } = await ingest.create("acme", {
    messages: [{ role: "user", content: "go", api_secret: secret }],
    session_id: null,
    agent: null,
    model: null,
    planning_gate: "off",
    metadata: { secret, kept: 1 },
    lease_ms: 86_400_000,
    external: true,
    asked: { tools_secret: secret },
  });
  const key = { tenant: "acme", run_id };
  const large = "x".repeat(limits.memberBytesMax);
  await ingest.append(key, [
    { type: "text.delta", payload: { text: "a", secret } },
    { type: "text.delta", payload: { text: "b", secret } },
    { type: "tool.end", payload: { call_id: "c", ok: true, output: { large, deep: [{ secret }] } } },
    { type: "child.spawn", payload: { child_id: "run_child", Secret: secret } },
    { type: "approval.requested", payload: { approval_id: "appr_1", input: { secret } } },
  ]);
  const answer: Draft = {
    type: "approval.resolved",
    payload: { approval_id: "appr_1", decision: "once", input: { secret } },
  };
  await ingest.change(key, (commit) => {
    commit.write(run_id, answer);
    expect(commit.asWritten(answer).payload).toMatchObject({ input: { secret: "[redacted]" } });
  });
  await ingest.append(key, [{ type: "run.lifecycle", payload: { state: "done", secret } }]);
  const head = await store.head(key);
  expect(head?.run.metadata).toEqual({ secret: "[redacted]", kept: 1 });
  const told = new Map<string, unknown>();
  for (const e of (await store.read(key, "full", 0, 1e9)).events) {
    if (e.child_id === null) told.set(e.type, (e.payload as Facts).redacted);
  }
  expect(Object.fromEntries(told)).toEqual({
    "run.lifecycle": ["/secret"],
    "turn.submitted": ["/messages/0/api_secret", "/metadata/secret", "/tools_secret"],
    "text.delta": ["/secret"],
    "tool.end": ["/output/deep/0/secret"],
    "child.spawn": ["/Secret"],
    "approval.requested": ["/input/secret"],
    "approval.resolved": ["/input/secret"],
    "message.settled": undefined,
  });
  expect(await codeOf(ingest.append(key, [answer]))).toBe("KAI-RUN-ENDED-0001");
  ingest.close();
  await store.close();
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  const texts = files.map(({ parentPath, name }) => readFileSync(join(parentPath, name), "latin1"));
  expect(texts.filter((text) => text.includes(large))).toHaveLength(1);
  expect(texts.filter((text) => text.includes(secret))).toEqual([]);
  rmSync(folder, { recursive: true });
});
