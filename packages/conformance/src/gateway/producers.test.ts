// Producers that number their events, so that a retry stores once.

import type { Facts } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import {
  call,
  claimHeaders,
  codeOf,
  createRun,
  eventsOf,
  lifecycle,
  lines,
  messageOf,
  runPath,
  text,
  tryAppend,
} from "./calls.js";
import { openSession } from "./open-session.js";
import { underTest } from "./under-test.js";

const server = underTest(startGateway);

describe("a producer with a number", () => {
  it("stores a retry once, also one that overlaps [RW-APPEND-5]", async () => {
    const run_id = await createRun(server.url);
    const batch = ["1", "2", "3"].map((n) => text(n));
    const claim = { id: "writer", epoch: 1, seq: 1 };
    const first = await tryAppend(server.url, run_id, batch, claim);
    expect([first.status, first.body]).toEqual([200, { first_pos: 3, last_pos: 5, last_producer_seq: 3 }]);
    const again = await tryAppend(server.url, run_id, batch, claim);
    expect([again.status, again.body]).toEqual([200, { first_pos: null, last_pos: 5, last_producer_seq: 3 }]);
    const overlapping = await tryAppend(server.url, run_id, [text("3"), text("4")], { ...claim, seq: 3 });
    expect(overlapping.body).toEqual({ first_pos: 6, last_pos: 6, last_producer_seq: 4 });
    const at = await Promise.all(
      Array.from({ length: 20 }, () => tryAppend(server.url, run_id, [text("5")], { ...claim, seq: 5 })),
    );
    expect(new Set(at.map(({ status }) => status))).toEqual(new Set([200]));
    const stored = (await eventsOf(server.url, run_id, "text.delta")).map(
      (e) => (e.payload as { text: string }).text,
    );
    expect(stored).toEqual(["1", "2", "3", "4", "5"]);
  });

  it("ends the calls that it opened, also where a retry brings their ends after what is stored [RW-APPEND-5]", async () => {
    const run_id = await createRun(server.url);
    // A wire whose calls need no ids: those of the log are made up, in their order.
    const about = { call_id: null, name: "look" };
    const whole = [
      { type: "tool_call", ...about, arguments: {} },
      { type: "tool_start", ...about },
      { type: "tool_end", ...about, result: "1", is_error: false },
      { type: "tool_call", ...about, arguments: {} },
      { type: "tool_start", ...about },
      { type: "tool_end", ...about, result: "2", is_error: false },
    ];
    const headers = claimHeaders({ id: "writer", epoch: 1, seq: 1 });
    for (const batch of [whole.slice(0, 4), whole, whole]) {
      const { status } = await call(
        server.url,
        "POST",
        runPath(run_id, "events?dialect=loom"),
        batch,
        headers,
      );
      expect(status).toBe(200);
    }
    const idsOf = async (type: string): Promise<readonly unknown[]> =>
      (await eventsOf(server.url, run_id, type)).map(({ payload }) => (payload as Facts).call_id);
    expect(await idsOf("tool.call")).toHaveLength(2);
    expect(await idsOf("tool.start")).toEqual(await idsOf("tool.call"));
    expect(await idsOf("tool.end")).toEqual(await idsOf("tool.call"));
  });

  it.each(["batches", "sessions"] as const)(
    "says calls without ids at the same time as others do, in %s, and each gets an id that no other has [RW-LOOM-4]",
    async (how) => {
      const run_id = await createRun(server.url);
      const names = ["a", "b", "c", "d", "e"];
      /** A call of a tool that no other producer has, so that it is known whose its end is. */
      const callBy = (name: string, result: string): readonly object[] => [
        { type: "tool_call", name, arguments: {} },
        { type: "tool_start", name },
        { type: "tool_end", name, result, is_error: false },
      ];
      const headersOf = (id: string, seq: number) => claimHeaders({ id, epoch: 1, seq });
      const sessions = new Map(
        names.map((id) => [id, openSession(server.url, run_id, headersOf(id, 1), "loom")]),
      );
      for (const [i, result] of ["1", "2", "3"].entries()) {
        const said = names.map(async (id) => {
          const seq = 1 + 3 * i;
          if (how === "batches") {
            const path = runPath(run_id, "events?dialect=loom");
            const { status } = await call(server.url, "POST", path, callBy(id, result), headersOf(id, seq));
            expect(status).toBe(200);
            return;
          }
          const session = sessions.get(id);
          session?.write(lines(callBy(id, result)));
          for (let stored = 0; stored < seq + 2; ) {
            const told = (await session?.answer()) as { readonly last_producer_seq: number };
            expect(told).toHaveProperty("last_producer_seq");
            stored = told.last_producer_seq;
          }
        });
        await Promise.all(said);
      }
      for (const session of sessions.values()) session.destroy();
      const idsOf = async (type: string): Promise<readonly unknown[]> =>
        (await eventsOf(server.url, run_id, type)).map(({ payload }) => (payload as Facts).call_id).sort();
      const ids = await idsOf("tool.call");
      expect(ids).toHaveLength(3 * names.length);
      expect(new Set(ids).size).toBe(ids.length);
      expect(await idsOf("tool.start")).toEqual(ids);
      expect(await idsOf("tool.end")).toEqual(ids);
    },
  );

  it("is refused with a gap 409, with an old epoch 403, and takes over with a new one [RW-APPEND-5]", async () => {
    const run_id = await createRun(server.url);
    const as = (epoch: number, seq: number) =>
      tryAppend(server.url, run_id, [text("x")], { id: "writer", epoch, seq });
    expect((await as(2, 1)).status).toBe(200);
    const gap = await as(2, 3);
    expect([gap.status, codeOf(gap)]).toEqual([409, "KAI-PRODUCER-GAP-0001"]);
    expect(messageOf(gap)).toContain("the next is 2");
    const old = await as(1, 2);
    expect([old.status, codeOf(old)]).toEqual([403, "KAI-PRODUCER-FENCED-0001"]);
    expect((await as(3, 2)).status).toBe(200);
    expect((await as(2, 3)).status).toBe(403);
    const known = await call(server.url, "GET", runPath(run_id, "producers/writer"));
    expect(known.body).toEqual({ producer_id: "writer", epoch: 3, last_producer_seq: 2 });
    const unknown = await call(server.url, "GET", runPath(run_id, "producers/nobody"));
    expect(unknown.body).toEqual({ producer_id: "nobody", epoch: 0, last_producer_seq: 0 });
    expect(await eventsOf(server.url, run_id, "text.delta")).toHaveLength(2);
  });

  it("may have any id, also one that every object has", async () => {
    const run_id = await createRun(server.url);
    for (const id of ["constructor", "toString", "a:b.c-d"]) {
      const claim = { id, epoch: 1, seq: 1 };
      expect((await tryAppend(server.url, run_id, [text("x")], claim)).status).toBe(200);
      expect((await tryAppend(server.url, run_id, [text("x")], claim)).body.first_pos).toBe(null);
      const known = await call(server.url, "GET", runPath(run_id, `producers/${id}`));
      expect(known.body).toEqual({ producer_id: id, epoch: 1, last_producer_seq: 1 });
    }
  });

  it("is told what is wrong with its headers", async () => {
    const run_id = await createRun(server.url);
    const wrong = [
      { "Producer-Seq": "1" },
      { "Producer-Id": "a b", "Producer-Seq": "1" },
      { "Producer-Id": "p", "Producer-Seq": "0" },
      { "Producer-Id": "p", "Producer-Seq": "-1" },
      { "Producer-Id": "p" },
      { "Producer-Id": "p", "Producer-Seq": "1", "Producer-Epoch": "x" },
    ];
    for (const headers of wrong) {
      const refused = await call(
        server.url,
        "POST",
        runPath(run_id, "events"),
        [text("x")],
        headers as never,
      );
      expect([headers, refused.status]).toEqual([headers, 400]);
      expect(messageOf(refused)).toContain("Producer-");
    }
  });

  it("has its refusals stored nowhere: a batch that failed can be sent again [RW-APPEND-2]", async () => {
    const run_id = await createRun(server.url);
    const claim = { id: "p", epoch: 1, seq: 1 };
    expect((await tryAppend(server.url, run_id, [text("a"), lifecycle("planning")], claim)).status).toBe(409);
    expect((await call(server.url, "GET", runPath(run_id, "producers/p"))).body.last_producer_seq).toBe(0);
    const again = await tryAppend(server.url, run_id, [text("a")], claim);
    expect(again.body).toEqual({ first_pos: 3, last_pos: 3, last_producer_seq: 1 });
  });
});
