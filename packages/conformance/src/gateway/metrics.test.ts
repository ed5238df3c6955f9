// What operators are told is true: facts are counted exactly, under names that the dashboard and the alerts use, and
// no label tells whose they are.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Event } from "@runwire/protocol";
import { type Clock, type Gateway, startGateway, systemClock } from "@runwire/server";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { allEvents, append, call, createRun, lifecycle, reasoning, runPath, say, text } from "./calls.js";
import { type Family, parseMetrics, total } from "./prometheus-text.js";
import { dechunked, rawAnswer, rawConnection, requestText } from "./raw-http.js";
import { openReading, readAll, streamPath, wireNames } from "./readers.js";

const folder = mkdtempSync(join(tmpdir(), "runwire-metrics-"));
const docs = fileURLToPath(new URL("../../../../docs/", import.meta.url));

let aheadMs = 0;
const clock: Clock = { now: systemClock.now, monotonic: () => systemClock.monotonic() + aheadMs };
let gateway: Gateway;
let url: string;
let started = 0;

// A gateway each: what others did is not counted here, although they ran in this process.
beforeEach(async () => {
  started += 1;
  const dataFolder = join(folder, String(started));
  gateway = await startGateway({ port: 0, dataFolder, durability: "os" }, clock);
  url = gateway.url;
});

afterEach(async () => {
  // Whatever a test made it count, the answer is well-formed and names nobody.
  expectNoIds(await scrape());
  await gateway.close();
});

afterAll(() => rmSync(folder, { recursive: true }));

async function scrape(of = url): Promise<ReadonlyMap<string, Family>> {
  const response = await fetch(`${of}/metrics`);
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  return parseMetrics(await response.text());
}

type Labels = { readonly [label: string]: string };

/** A request is counted when its answer has gone, which the client may notice first. */
function expectSoon(name: string, labels: Labels, value: number): Promise<void> {
  return expect
    .poll(async () => total(await scrape(), name, labels), { message: `${name} ${JSON.stringify(labels)}` })
    .toBe(value);
}

function expectNoIds(families: ReadonlyMap<string, Family>): void {
  for (const { name, samples } of families.values()) {
    for (const { labels } of samples) {
      for (const value of Object.values(labels)) {
        expect(value, name).not.toMatch(/[0-9A-HJKMNP-TV-Z]{20}|[0-9a-f]{16}/);
        expect(value, name).toMatch(/^[A-Za-z0-9_.:/+-]{1,64}$/);
      }
    }
  }
}

const tool = (call_id: string) => say("tool.start", { call_id, tool: "shell", input: "ls" });

describe("the write path", () => {
  it("counts commits, events and appends exactly, and what is hot and alive", async () => {
    const run_id = await createRun(url);
    await append(url, run_id, tool("a"), tool("b"));
    await append(url, run_id, tool("c"));
    const before = await scrape();
    expect(total(before, "runwire_commits_total")).toBe(3);
    expect(total(before, "runwire_events_stored_total")).toBe(5);
    expect(total(before, "runwire_hot_events")).toBe(5);
    expect(total(before, "runwire_hot_bytes")).toBeGreaterThan(5 * 256);
    expect(total(before, "runwire_runs_live")).toBe(1);
    for (const histogram of ["runwire_commit_wait_seconds", "runwire_commit_write_seconds"]) {
      expect(total(before, `${histogram}_count`)).toBe(3);
      expect(total(before, `${histogram}_sum`)).toBeGreaterThan(0);
    }
    expect(total(before, "runwire_commit_appends_sum")).toBe(3);
    expect(total(before, "runwire_commit_queue_appends")).toBe(0);
    expect(total(before, "runwire_wal_bytes")).toBeGreaterThan(0);
    expect(total(before, "runwire_database_bytes")).toBeGreaterThan(0);
    expect(total(before, "runwire_disk_free_bytes")).toBeGreaterThan(0);

    // However they are batched, each is an append of one commit.
    await Promise.all(Array.from({ length: 40 }, (_, i) => append(url, run_id, tool(`many_${i}`))));
    const after = await scrape();
    expect(total(after, "runwire_commit_appends_sum")).toBe(43);
    expect(total(after, "runwire_commit_appends_count")).toBe(total(after, "runwire_commits_total"));
    expect(total(after, "runwire_events_stored_total")).toBe(45);

    // One that is refused is none.
    expect((await call(url, "POST", runPath(run_id, "events"), [{ type: "nonsense" }])).status).toBe(422);
    await append(url, run_id, lifecycle("error"));
    const ended = await scrape();
    expect(total(ended, "runwire_commit_appends_sum")).toBe(44);
    expect(total(ended, "runwire_runs_live")).toBe(0);
    expect(total(ended, "runwire_commit_failures_total")).toBe(0);
  });

  it("counts runs whose producer was lost", async () => {
    await createRun(url, { lease_ms: 1000 });
    await createRun(url, { lease_ms: 600_000 });
    aheadMs += 2000;
    await expectSoon("runwire_leases_lost_total", {}, 1);
    const families = await scrape();
    expect(total(families, "runwire_runs_live")).toBe(1);
    expect(total(families, "runwire_sweeps_total")).toBeGreaterThan(0);
    expect(total(families, "runwire_sweep_failures_total")).toBe(0);
  });
});

describe("readers", () => {
  it("are counted while they read, with what they were sent and how they ended", async () => {
    const run_id = await createRun(url);
    const kinds = wireNames.flatMap((transport) =>
      ["koder", "runwire"].map((dialect) => ({ transport, dialect })),
    );
    const readings = await Promise.all(
      kinds.map(({ transport, dialect }) => openReading(transport, url, streamPath({ run_id, dialect }))),
    );
    const cut = await openReading("ndjson", url, streamPath({ run_id }));
    for (const reading of [...readings, cut]) await reading.until(({ events }) => events.length > 0);
    const during = await scrape();
    for (const kind of kinds) {
      const twice = kind.transport === "ndjson" && kind.dialect === "koder" ? 2 : 1;
      expect(total(during, "runwire_readers", kind)).toBe(twice);
      expect(total(during, "runwire_streams_opened_total", kind)).toBe(twice);
    }
    expect(total(during, "runwire_readers_live")).toBe(7);
    expect(total(during, "runwire_reader_lag_max_bytes")).toBe(0);
    expect(total(during, "runwire_connections")).toBeGreaterThanOrEqual(7);
    expect(total(during, "runwire_websocket_upgrades_total", { outcome: "accepted" })).toBe(2);

    cut.stop();
    await expectSoon("runwire_streams_closed_total", { reason: "broken" }, 1);
    await append(url, run_id, tool("a"), lifecycle("error"));
    for (const reading of readings) await reading.ended;
    await expectSoon("runwire_streams_closed_total", { reason: "finished" }, 6);
    const after = await scrape();
    expect(total(after, "runwire_readers")).toBe(0);
    expect(total(after, "runwire_readers_live")).toBe(0);
    expect(total(after, "runwire_streams_opened_total")).toBe(7);
    for (const [i, kind] of kinds.entries()) {
      const heard = readings[i]?.heard ?? [];
      const more = kind.transport === "ndjson" && kind.dialect === "koder" ? cut.heard.length : 0;
      expect(total(after, "runwire_stream_sent_messages_total", kind)).toBe(heard.length + more);
      const bytes = heard.reduce((sum, { data }) => sum + Buffer.byteLength(data), 0);
      expect(total(after, "runwire_stream_sent_bytes_total", kind)).toBeGreaterThan(bytes);
    }
  });

  it("of several runs on one connection are one each", async () => {
    const runs = [await createRun(url), await createRun(url)];
    const reading = await openReading("sse", url, `/v1/agent/stream?runs=${runs.join(",")}`);
    await reading.until(({ events }) => events.length === 2);
    await expectSoon("runwire_readers", { transport: "sse", dialect: "koder" }, 2);
    for (const run_id of runs) await append(url, run_id, lifecycle("error"));
    await reading.ended;
    await expectSoon("runwire_streams_closed_total", { reason: "finished" }, 2);
    await expectSoon("runwire_readers", {}, 0);
  });

  it("are seen to go while the server leaves, and it says that it is not ready", async () => {
    const leaving = await startGateway({ port: 0, dataFolder: join(folder, "leaving"), durability: "os" });
    // Begun before and finished after: whoever is being answered still is.
    const asking = await rawConnection(leaving.url);
    const request = requestText(leaving.url, "GET", "/metrics", ["Connection: close"]);
    asking.write(request.slice(0, -2));
    const run_id = await createRun(leaving.url);
    const readings = await Promise.all(
      wireNames.map((wire) => openReading(wire, leaving.url, streamPath({ run_id }))),
    );
    for (const reading of readings) await reading.until(({ events }) => events.length === 1);
    const closed = leaving.close();
    for (const reading of readings) await reading.ended;
    asking.write(request.slice(-2));
    await asking.ended;
    await closed;
    const families = parseMetrics(asking.text.slice(asking.text.indexOf("\r\n\r\n") + 4));
    expect(total(families, "runwire_streams_closed_total", { reason: "leaving" })).toBe(3);
    expect(total(families, "runwire_readers")).toBe(0);
    expect(total(families, "runwire_ready")).toBe(0);
  });

  it("are counted by where they begin", async () => {
    const run_id = await createRun(url);
    await append(url, run_id, tool("a"), lifecycle("error"));
    const end = (await allEvents(url, run_id, { dialect: "koder", detail: "default" })).at(-1)?.seq ?? 0;
    const asks = [
      { began: "start", query: {} },
      { began: "start", query: { after: 0 } },
      { began: "resumed", query: { after: 1 } },
      { began: "reset", query: { after: end + 1 } },
      { began: "reset", query: { after: "nonsense" } },
      { began: "finished", query: { after: end } },
    ] as const;
    for (const wire of wireNames)
      for (const { query } of asks) await readAll(wire, url, streamPath({ run_id, ...query }));
    await readAll("sse", url, streamPath({ run_id, snapshot: 1 }));
    await call(url, "DELETE", `/v1/agent/runs/${run_id}`);
    for (const wire of wireNames) {
      expect((await readAll(wire, url, streamPath({ run_id }))).status).toBe(410);
    }
    // A page of a run that is gone is no stream.
    expect((await call(url, "GET", runPath(run_id, "events"))).status).toBe(410);
    const families = await scrape();
    const outcomes = { start: 6, resumed: 3, reset: 6, finished: 3, snapshot: 1, gone: 3 };
    for (const [outcome, count] of Object.entries(outcomes))
      expect(total(families, "runwire_stream_beginnings_total", { outcome }), outcome).toBe(count);
    await expectSoon("runwire_refusals_total", { code: "KAI-STREAM-CONN-0002" }, 4);
    await expectSoon("runwire_websocket_upgrades_total", { outcome: "refused" }, 1);
  });

  it("that fall behind are seen lagging, and what they lose is counted as they are told it", {
    timeout: 120_000,
  }, async () => {
    const run_id = await createRun(url);
    const stalled = await rawConnection(url);
    stalled.write(requestText(url, "GET", streamPath({ run_id }), ["Connection: close"]));
    await stalled.until((answer) => answer.includes('"running"') && answer.endsWith("\n\n\r\n"));
    stalled.socket.pause();
    for (let i = 0; i < 20; i++) {
      const rounds = Array.from({ length: 20 }, (_, k) => [
        reasoning("r".repeat(40_000)),
        text("t".repeat(20_000)),
        tool(`call_${k}`),
      ]);
      await append(url, run_id, ...rounds.flat());
    }
    const behind = await scrape();
    expect(total(behind, "runwire_readers_live")).toBe(1);
    expect(total(behind, "runwire_reader_lag_max_bytes")).toBeGreaterThan(1024 * 1024);
    expect(total(behind, "runwire_reader_lag_all_bytes")).toBe(total(behind, "runwire_reader_lag_max_bytes"));
    expect(total(behind, "runwire_readers_behind", { over_bytes: "1048576" })).toBe(1);
    expect(total(behind, "runwire_events_dropped_total")).toBe(0);

    await append(url, run_id, lifecycle("error"));
    stalled.socket.resume();
    await stalled.ended;
    const events = [...dechunked(stalled.text).matchAll(/^data: (.*)$/gm)].map(
      ([, data]) => JSON.parse(data ?? "{}") as Event,
    );
    const had = new Set(events.map(({ seq }) => seq));
    const whole = await allEvents(url, run_id, { dialect: "koder", detail: "default" });
    const lost = whole.filter(({ seq }) => !had.has(seq));
    expect(lost.length).toBeGreaterThan(0);
    expect(events.at(-1)?.payload).toMatchObject({ dropped_count: lost.length });
    const families = await scrape();
    for (const type of ["reasoning.delta", "text.delta"]) {
      const count = lost.filter((e) => e.type === type).length;
      expect(total(families, "runwire_events_dropped_total", { type }), type).toBe(count);
    }
    expect(total(families, "runwire_ranges_cached_bytes")).toBeGreaterThan(0);
  });
});

describe("requests", () => {
  it("are counted by the pattern of their route, and timed unless they stream", async () => {
    const run_id = await createRun(url);
    const route = "/v1/agent/runs/:id";
    for (let i = 0; i < 3; i++) await call(url, "GET", `/v1/agent/runs/${run_id}`);
    await call(url, "GET", "/v1/agent/runs/run_nobody");
    await call(url, "PUT", `/v1/agent/runs/${run_id}`);
    await call(url, "GET", "/v1/secret/place");
    await append(url, run_id, lifecycle("error"));
    await readAll("sse", url, streamPath({ run_id }));
    await rawAnswer(url, requestText(url, "MKCOL", "/", ["Connection: close"]));
    await rawAnswer(url, "nonsense\r\n\r\n");

    await expectSoon("runwire_http_requests_total", { route, method: "GET", status: "2xx" }, 3);
    await expectSoon("runwire_http_requests_total", { route, method: "GET", status: "4xx" }, 1);
    await expectSoon("runwire_http_requests_total", { route: "none", method: "PUT", status: "4xx" }, 1);
    await expectSoon("runwire_http_requests_total", { route: "none", method: "GET", status: "4xx" }, 1);
    await expectSoon("runwire_http_requests_total", { route: "none", method: "other", status: "4xx" }, 1);
    await expectSoon("runwire_http_requests_total", { route: `${route}/stream` }, 1);
    const families = await scrape();
    const timed = "runwire_http_request_duration_seconds_count";
    expect(total(families, timed, { route, method: "GET" })).toBe(4);
    expect(total(families, timed, { route: `${route}/stream` })).toBe(0);
    const refusals = {
      "KAI-RUN-MISSING-0001": 1,
      "KAI-REQUEST-METHOD-0001": 1,
      "KAI-REQUEST-PATH-0001": 2,
      "KAI-REQUEST-BODY-0001": 1,
    };
    for (const [code, count] of Object.entries(refusals))
      expect(total(families, "runwire_refusals_total", { code }), code).toBe(count);
    expect(total(families, "runwire_refusals_total")).toBe(5);
  });

  it("of one gateway are not another's, although they share a process", async () => {
    const other = await startGateway({ port: 0, dataFolder: join(folder, "other"), durability: "os" });
    try {
      await createRun(other.url);
      const theirs = await scrape(other.url);
      expect(total(theirs, "runwire_commits_total")).toBe(1);
      expect(total(await scrape(), "runwire_commits_total")).toBe(0);
      expect(total(theirs, "process_resident_memory_bytes")).toBeGreaterThan(0);
    } finally {
      await other.close();
    }
  });
});

describe("the dashboard and the alerts", () => {
  const metric = /\b(?:runwire|nodejs|process)_[a-z0-9_]+/g;
  const dashboard = readFileSync(join(docs, "grafana.json"), "utf8");
  const alerts = readFileSync(join(docs, "alerts.yml"), "utf8");

  it("ask only for what is exported, and the dashboard shows all that is", async () => {
    const families = [...(await scrape()).values()];
    const exported = new Set(
      families.flatMap(({ name, kind }) =>
        kind === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
      ),
    );
    const shown = new Set(dashboard.match(metric));
    const watched = new Set(alerts.match(metric));
    expect(watched.size).toBeGreaterThan(5);
    for (const name of [...shown, ...watched]) expect(exported, name).toContain(name);
    const own = families.map(({ name }) => name).filter((name) => name.startsWith("runwire_"));
    expect(own.filter((name) => !shown.has(name) && !shown.has(`${name}_bucket`))).toEqual([]);
  });

  it("have names as Prometheus asks for them: counters end in _total, and only they, and all have a help", async () => {
    for (const { name, kind, help } of (await scrape()).values()) {
      if (!name.startsWith("runwire_")) continue;
      expect(name.endsWith("_total"), name).toBe(kind === "counter");
      expect(help, name).toMatch(/\.$/);
      expect(name, name).not.toMatch(/_(ms|milliseconds|kb|mb|count|sum|bucket)$/);
    }
  });

  it("are laid out in rows that do not overlap, over one data source that can be chosen", () => {
    const { panels, templating } = JSON.parse(dashboard) as {
      readonly panels: readonly Panel[];
      readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] };
    };
    expect(panels.filter(({ type }) => type === "row").map(({ title }) => title)).toEqual([
      "Traffic",
      "Readers and lag",
      "Drops and resumes",
      "Commits and latency",
      "Storage",
      "Process",
      "Refusals",
    ]);
    expect(templating.list[0]).toMatchObject({ name: "datasource", type: "datasource" });
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const taken = new Set<string>();
    for (const { gridPos, title, targets = [], datasource } of panels) {
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken.has(`${x},${y}`), title).toBe(false);
          taken.add(`${x},${y}`);
        }
      }
      if (targets.length > 0) expect(datasource?.uid).toBe("${" + "datasource}");
    }
  });
});

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly unknown[];
}
