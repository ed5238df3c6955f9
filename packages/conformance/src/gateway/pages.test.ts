// Everything that is not a stream is a view of the same log: pages, replays, snapshots, lists, and its erasure.

import { type Event, emptyTranscript, type Facts, reduce } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { beforeAll, describe, expect, it } from "vitest";
import {
  allEvents,
  append,
  call,
  codeOf,
  control,
  createRun,
  lifecycle,
  runPath,
  say,
  text,
  tryAppend,
} from "./calls.js";
import { chance } from "./chance.js";
import { lastEventId, openReading, readAll, streamPath, wireNames } from "./readers.js";
import { freshChildId, record, storyOfEveryType } from "./story.js";
import { underTest } from "./under-test.js";

const luck = chance("pages");
let run_id: string;

const server = underTest(startGateway);

beforeAll(async () => {
  run_id = await record(server.url, storyOfEveryType(luck.seed), 40);
});

const views = ["koder", "runwire"].flatMap((dialect) =>
  ["default", "full"].map((detail) => ({ dialect, detail })),
);

describe("pages of a log", () => {
  it.each(views)("hold what the stream says, whatever their size: $dialect, $detail", async (view) => {
    const { events } = await readAll("ndjson", server.url, streamPath({ run_id, ...view }));
    for (const pageEvents of [1, 7, 100, 1000]) {
      expect(await allEvents(server.url, run_id, { ...view, pageEvents })).toEqual(events);
    }
  });

  it.each(views)("are one with the replay, byte for byte: $dialect, $detail", async ({ dialect, detail }) => {
    const stream = await readAll("ndjson", server.url, streamPath({ run_id, dialect, detail }));
    const path = runPath(run_id, `replay.jsonl?dialect=${dialect}&detail=${detail}`);
    const replay = await readAll("ndjson", server.url, path);
    expect(replay.text).toBe(stream.text);
    expect(replay.ending.clean).toBe(true);
  });

  it("of a live run end where it is, and so does its replay", async () => {
    const live = await createRun(server.url);
    await append(server.url, live, text("so far"), say("title", { title: "t" }));
    const replay = await readAll("ndjson", server.url, runPath(live, "replay.jsonl?dialect=runwire"));
    expect(replay.events).toHaveLength(4);
    expect(await allEvents(server.url, live, { detail: "default", pageEvents: 3 })).toEqual(replay.events);
  });

  it("end where they are large, and go on from there", async () => {
    const large = await createRun(server.url);
    const texts = Array.from({ length: 5 }, (_, i) => `${i}`.padEnd(5 * 1024 * 1024));
    for (const said of texts) await append(server.url, large, say("message.settled", { text: said }));
    const path = "events?dialect=runwire&limit=100";
    const { body } = await call(server.url, "GET", runPath(large, path));
    expect((body.events as Event[]).map(({ pos }) => pos)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(body.next).toBe(6);
    const events = await allEvents(server.url, large, { detail: "default" });
    const isSaid = events.slice(2).map(({ payload }, i) => (payload as Facts).text === texts[i]);
    expect(isSaid).toEqual(texts.map(() => true));
  });

  it("take a limit of 1 and more", async () => {
    for (const limit of ["0", "-1", "x", "1.5", ""]) {
      expect([
        limit,
        (await call(server.url, "GET", runPath(run_id, `events?limit=${limit}`))).status,
      ]).toEqual([limit, 400]);
    }
  });
});

describe("a snapshot", () => {
  it.each(views)(
    "at any point is the fold of the events up to it: $dialect, $detail [RW-FOLD-1]",
    async ({ dialect, detail }) => {
      const log = await allEvents(server.url, run_id, { detail });
      const cursor = dialect === "koder" ? "seq" : "pos";
      let transcript = emptyTranscript(run_id);
      let seen = 0;
      for (const e of log) {
        transcript = reduce(transcript, e);
        // A number of koder names the core event that bears it, not the extended ones after it.
        if (e[cursor] === seen) continue;
        seen = e[cursor];
        const { body } = await call(
          server.url,
          "GET",
          runPath(run_id, `snapshot?at=${seen}&dialect=${dialect}&detail=${detail}`),
        );
        expect(body).toEqual({ pos: e.pos, seq: e.seq, transcript: plain(transcript) });
      }
    },
  );

  it("without a point, or beyond the end, is the fold of all; at 0 of nothing", async () => {
    const log = await allEvents(server.url, run_id, { detail: "default" });
    const whole = plain(log.reduce(reduce, emptyTranscript(run_id)));
    for (const at of ["", "at=99999"]) {
      expect((await call(server.url, "GET", runPath(run_id, `snapshot?${at}`))).body.transcript).toEqual(
        whole,
      );
    }
    const nothing = (await call(server.url, "GET", runPath(run_id, "snapshot?at=0"))).body;
    expect(nothing).toEqual({ pos: 0, seq: 0, transcript: emptyTranscript(run_id) });
    expect((await call(server.url, "GET", runPath(run_id, "snapshot?at=x"))).status).toBe(400);
    const { body } = await call(server.url, "GET", runPath(run_id, "steps"));
    expect(body.steps).toEqual((whole as { steps: unknown }).steps);
  });

  it("of a long log is the same fold, though it begins at a kept one", async () => {
    const long = await createRun(server.url);
    for (let i = 0; i < 40; i++) {
      await append(
        server.url,
        long,
        text("x".repeat(9000)),
        say("step.boundary", { step_index: i, step_kind: "text-only" }),
      );
      if (i % 10 === 9) await call(server.url, "GET", runPath(long, "snapshot"));
    }
    const log = await allEvents(server.url, long, { detail: "default" });
    for (let at = 1; at <= log.length; at += 7) {
      const { body } = await call(server.url, "GET", runPath(long, `snapshot?dialect=runwire&at=${at}`));
      expect(body.transcript).toEqual(plain(log.slice(0, at).reduce(reduce, emptyTranscript(long))));
    }
  });
});

describe("a run", () => {
  it("tells its state, counts, usage and children", async () => {
    const root = await createRun(server.url, {
      agent: "scribe",
      session_id: "sess_own",
      metadata: { team: "a" },
    });
    const child_id = freshChildId();
    await append(
      server.url,
      root,
      say("child.spawn", { child_id }),
      say("usage", { input_tokens: 3, output_tokens: 1 }),
      say("usage", { input_tokens: 4 }),
      say("title", { title: "A run" }),
    );
    const { body } = await call(server.url, "GET", `/v1/agent/runs/${root}`);
    expect(body).toMatchObject({
      run_id: root,
      session_id: "sess_own",
      agent: "scribe",
      state: "running",
      title: "A run",
      parent_id: null,
      root_id: root,
      children: [child_id],
      usage: { input_tokens: 7, output_tokens: 1 },
      metadata: { team: "a" },
      replay_uri: runPath(root, "replay.jsonl"),
      stream_url: runPath(root, "stream"),
    });
    const events = await allEvents(server.url, root);
    expect((body.counts as Facts).events).toBe(events.length);
    expect((body.counts as Facts).core_events).toBe(events.at(-1)?.seq);
    await append(server.url, root, lifecycle("done"));
    const ended = (await call(server.url, "GET", `/v1/agent/runs/${root}`)).body;
    expect(ended).toMatchObject({ state: "done", counts: { live_children: 0 } });
    expect(Date.parse(ended.ended_at as string)).toBeGreaterThan(0);
  });

  it("is refused where what is asked makes no sense", async () => {
    const wrong: readonly Facts[] = [
      { prompt: "x" },
      { producer: "external", prompt: 7 },
      { producer: "external", prompt: "x", messages: [] },
      { producer: "external", planning_gate: "maybe" },
      { producer: "external", lease_ms: 1 },
      { producer: "external", agent: "a b" },
      { producer: "external", colour: "red" },
    ];
    for (const body of wrong) {
      const refused = await call(server.url, "POST", "/v1/agent/runs", body);
      expect([body, refused.status, codeOf(refused)]).toEqual([body, 422, "KAI-REQUEST-BODY-0002"]);
    }
    for (const body of ["[]", "7", "{", '"x"']) {
      expect([body, (await call(server.url, "POST", "/v1/agent/runs", body)).status]).toEqual([body, 400]);
    }
  });
});

describe("the run list", () => {
  it("is newest first, filtered and paged", async () => {
    const made: string[] = [];
    for (let i = 0; i < 7; i++) {
      const own = await createRun(server.url, {
        agent: i % 2 ? "odd" : "even",
        session_id: `sess_list${i % 3}`,
      });
      if (i < 3) await control(server.url, own, "abort");
      made.unshift(own);
    }
    const ids = async (query: string): Promise<readonly string[]> => {
      const found: string[] = [];
      for (let cursor = ""; ; ) {
        const { status, body } = await call(server.url, "GET", `/v1/agent/runs?${query}${cursor}`);
        expect(status).toBe(200);
        found.push(...(body.runs as { run_id: string }[]).map((run) => run.run_id));
        if (body.next === null) return found;
        cursor = `&cursor=${body.next}`;
      }
    };
    expect((await ids("limit=2")).slice(0, 7)).toEqual(made);
    expect((await ids("limit=200")).slice(0, 7)).toEqual(made);
    expect(await ids("agent=odd&limit=2")).toEqual(made.filter((_, i) => i % 2 === 1));
    expect(await ids("agent=even&limit=1")).toEqual(made.filter((_, i) => i % 2 === 0));
    expect(await ids("session_id=sess_list0")).toEqual([made[0], made[3], made[6]]);
    expect((await ids("state=aborted&limit=2")).slice(0, 3)).toEqual(made.slice(4));
    expect((await ids("state=running&limit=2")).slice(0, 4)).toEqual(made.slice(0, 4));
    expect(await ids("state=running&agent=odd&limit=1")).toEqual([made[1], made[3]]);
    // Roots only, of those that live too.
    const child_id = freshChildId();
    await append(server.url, made[0] as string, say("child.spawn", { child_id }));
    expect(await ids("state=running")).not.toContain(child_id);
    expect(await ids("state=paused")).toEqual([]);
    expect((await call(server.url, "GET", "/v1/agent/runs?state=sleeping")).status).toBe(400);
  });

  it.each(["sse", "ndjson"] as const)(
    "is a stream of what changes it, after a snapshot: %s",
    async (wire) => {
      const before = await createRun(server.url);
      const reading = await openReading(wire, server.url, "/v1/agent/runs/stream");
      await reading.until(({ heard }) => heard.length === 1);
      const snapshot = JSON.parse(reading.heard[0]?.data ?? "{}") as {
        type: string;
        pos: number;
        runs: Facts[];
      };
      expect(snapshot).toMatchObject({ type: "snapshot", reset: false });
      expect(snapshot.runs[0]).toMatchObject({ run_id: before, state: "running" });
      const own = await createRun(server.url);
      await append(server.url, own, text("not of the list's concern"), say("title", { title: "named" }));
      await append(server.url, own, lifecycle("done"));
      await reading.until(({ heard }) => heard.length === 5);
      const changes = reading.heard.slice(1).map(({ data }) => JSON.parse(data) as Event);
      expect(changes.map(({ type, run_id, pos }) => [type, run_id, pos - snapshot.pos])).toEqual([
        ["run.lifecycle", own, 1],
        ["turn.submitted", own, 2],
        ["title", own, 3],
        ["run.lifecycle", own, 4],
      ]);
      reading.stop();
      const cursor = wire === "sse" ? lastEventId(reading) : String(changes.at(-1)?.pos);
      expect(cursor).toBe(String(snapshot.pos + 4));
      await control(server.url, before, "abort");
      // Resumed in the middle: no snapshot, and what follows the cursor.
      const resumed = await openReading(wire, server.url, `/v1/agent/runs/stream?after=${snapshot.pos + 2}`);
      await resumed.until(({ heard }) => heard.length === 3);
      expect(resumed.heard.map(({ data }) => (JSON.parse(data) as Event).pos - snapshot.pos)).toEqual([
        3, 4, 5,
      ]);
      resumed.stop();
      for (const unusable of ["999999", "x", "-1"]) {
        const reset = await openReading(wire, server.url, `/v1/agent/runs/stream?after=${unusable}`);
        await reset.until(({ heard }) => heard.length === 1);
        expect(JSON.parse(reset.heard[0]?.data ?? "{}")).toMatchObject({ type: "snapshot", reset: true });
        reset.stop();
      }
    },
  );

  it("shows one order to readers that join while runs come and go", async () => {
    const readings = [await openReading("ndjson", server.url, "/v1/agent/runs/stream")];
    const runs = Array.from({ length: 40 }, async (_, i) => {
      const own = await createRun(server.url);
      readings.push(await openReading("ndjson", server.url, "/v1/agent/runs/stream"));
      await append(server.url, own, lifecycle(i % 2 ? "done" : "error"));
      return own;
    });
    await Promise.all(runs);
    const last = await createRun(server.url);
    const isLast = (data: string | undefined) => data?.includes("turn.submitted") && data.includes(last);
    await Promise.all(
      readings.map((reading) => reading.until(({ heard }) => isLast(heard.at(-1)?.data) ?? false)),
    );
    const lines = readings.map(({ heard }) => heard.filter(({ data }) => !data.includes('"snapshot"')));
    const whole = lines[0] ?? [];
    for (const [i, own] of lines.entries()) {
      expect(own).toEqual(whole.slice(whole.length - own.length));
      const { pos } = JSON.parse(readings[i]?.heard[0]?.data ?? "{}") as { pos: number };
      if (own.length > 0) expect((JSON.parse(own[0]?.data ?? "{}") as Event).pos).toBe(pos + 1);
      readings[i]?.stop();
    }
  });
});

describe("a run that is erased", () => {
  it("is gone for every reader with its children, and was there until it was gone", async () => {
    const root = await createRun(server.url);
    const [child, grandchild] = [freshChildId(), freshChildId()];
    await append(server.url, root, say("child.spawn", { child_id: child }));
    await append(server.url, root, say("child.spawn", { child_id: grandchild }, child));
    await append(server.url, root, text("secret words", grandchild));
    const alone = await call(server.url, "DELETE", `/v1/agent/runs/${child}`);
    expect([alone.status, codeOf(alone)]).toEqual([409, "KAI-RUN-CHILD-0002"]);
    expect((alone.body.error as { message: string }).message).toContain(root);
    const readings = await Promise.all(
      wireNames.map((wire) => openReading(wire, server.url, streamPath({ run_id: root }))),
    );
    await Promise.all(readings.map((reading) => reading.until(({ events }) => events.length >= 4)));

    const erased = await call(server.url, "DELETE", `/v1/agent/runs/${root}`);
    expect([erased.status, erased.text]).toEqual([204, ""]);
    for (const reading of readings) expect((await reading.ended).clean).toBe(true);
    for (const gone of [root, child, grandchild]) {
      for (const rest of [
        "stream",
        "events",
        "replay.jsonl",
        "snapshot",
        "steps",
        "children",
        "producers/p",
      ]) {
        const reply = await call(server.url, "GET", runPath(gone, rest));
        expect([rest, reply.status, codeOf(reply)]).toEqual([rest, 410, "KAI-STREAM-CONN-0002"]);
      }
      expect((await call(server.url, "GET", `/v1/agent/runs/${gone}`)).status).toBe(410);
      expect((await call(server.url, "DELETE", `/v1/agent/runs/${gone}`)).status).toBe(410);
      expect((await readAll("websocket", server.url, streamPath({ run_id: gone }))).status).toBe(410);
      expect((await readAll("sse", server.url, `/v1/agent/stream?runs=${gone}`)).status).toBe(410);
    }
    const listed = await call(server.url, "GET", "/v1/agent/runs?limit=200");
    expect(listed.text).not.toContain(root);
    const other = await createRun(server.url);
    const reborn = await tryAppend(server.url, other, [say("child.spawn", { child_id: grandchild })]);
    expect([reborn.status, codeOf(reborn)]).toEqual([409, "KAI-RUN-CHILD-0003"]);
  });

  it("is gone for every writer too: 410, not 404", async () => {
    const root = await createRun(server.url);
    await call(server.url, "DELETE", `/v1/agent/runs/${root}`);
    const replies = [
      await tryAppend(server.url, root, [text("x")]),
      await control(server.url, root, "abort"),
      await control(server.url, root, "steer", { text: "x" }),
      await call(server.url, "POST", runPath(root, "children"), { prompt: "x" }),
    ];
    expect(replies.map(({ status }) => status)).toEqual([410, 410, 410, 410]);
  });
});

function plain(transcript: unknown): unknown {
  return JSON.parse(JSON.stringify(transcript));
}
