// A batch of events: what is taken, what is refused, and how that is told.

import { type Draft, dialects, limits } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import {
  allEvents,
  call,
  codeOf,
  createRun,
  eventsOf,
  lifecycle,
  lines,
  messageOf,
  ndjson,
  runPath,
  say,
  text,
  tryAppend,
} from "./calls.js";
import { rawConnection, requestText } from "./raw-http.js";
import { underTest } from "./under-test.js";

const server = underTest(startGateway);

describe("a batch", () => {
  it("is a JSON array or NDJSON, and is answered with its places in the full log [RW-APPEND-1]", async () => {
    const run_id = await createRun(server.url);
    const first = await tryAppend(server.url, run_id, [text("a"), text("b"), say("title", { title: "t" })]);
    expect([first.status, first.body]).toEqual([200, { first_pos: 3, last_pos: 5 }]);
    const second = await call(
      server.url,
      "POST",
      runPath(run_id, "events"),
      lines([text("c"), text("d")]),
      ndjson,
    );
    expect([second.status, second.body]).toEqual([200, { first_pos: 6, last_pos: 7 }]);
    const windows = `\uFEFF${lines([text("e")]).trimEnd()}\r\n\r\n${JSON.stringify(text("f"))}`;
    const third = await call(server.url, "POST", runPath(run_id, "events"), windows, ndjson);
    expect([third.status, third.body]).toEqual([200, { first_pos: 8, last_pos: 9 }]);
    expect(
      (await eventsOf(server.url, run_id, "text.delta"))
        .map((e) => (e.payload as { text: string }).text)
        .join(""),
    ).toBe("abcdef");
  });

  it("may be written in any dialect that has a decoder [RW-APPEND-1]", async () => {
    const run_id = await createRun(server.url);
    const said = [
      { type: "text.delta", payload: { text: "hi" }, id: "evt_mine", ts: "2026-01-01T00:00:00Z", seq: 77 },
    ];
    const taken = await call(server.url, "POST", runPath(run_id, "events?dialect=koder"), said);
    expect(taken.status).toBe(200);
    const [stored] = await eventsOf(server.url, run_id, "text.delta");
    expect(stored).toMatchObject({ pos: 3, seq: 2, payload: { text: "hi" } });
    expect(stored?.id).not.toBe("evt_mine");
    const extended = await call(server.url, "POST", runPath(run_id, "events?dialect=koder"), [
      say("title", { title: "t" }),
    ]);
    expect([extended.status, codeOf(extended)]).toEqual([422, "KAI-STREAM-PROTO-0002"]);
  });

  it("is stored whole or not at all, and what is wrong is named with its line [RW-APPEND-2]", async () => {
    const run_id = await createRun(server.url);
    const good = text("good");
    const cases: readonly [unknown, number, string][] = [
      [{ type: "text.delta", payload: {} }, 422, "KAI-STREAM-PROTO-0001"],
      [{ type: "text.delta" }, 422, "KAI-STREAM-PROTO-0001"],
      [{ payload: {} }, 422, "KAI-STREAM-PROTO-0001"],
      ["text", 422, "KAI-STREAM-PROTO-0001"],
      [null, 422, "KAI-STREAM-PROTO-0001"],
      [[], 422, "KAI-STREAM-PROTO-0001"],
      [{ type: "no.such.type", payload: {} }, 422, "KAI-STREAM-PROTO-0002"],
      [{ type: "text.delta\n", payload: { text: "" } }, 422, "KAI-STREAM-PROTO-0002"],
      [{ type: "text.delta", payload: { text: "x", call_id: "a b" } }, 422, "KAI-STREAM-PROTO-0001"],
      [{ ...good, child_id: "run_unknown" }, 422, "KAI-RUN-CHILD-0001"],
      [{ ...good, child_id: run_id }, 422, "KAI-RUN-CHILD-0001"],
      [lifecycle("planning"), 409, "KAI-RUN-STATE-0001"],
      [say("child.spawn", { child_id: "kid" }), 422, "KAI-STREAM-PROTO-0001"],
    ];
    for (const [bad, status, code] of cases) {
      for (const dialect of ["runwire", "koder"]) {
        const path = runPath(run_id, `events?dialect=${dialect}`);
        const array = await call(server.url, "POST", path, [good, bad, good]);
        expect([bad, array.status, codeOf(array)]).toEqual([bad, status, code]);
        const batch = await call(server.url, "POST", path, lines([good, bad, good]), ndjson);
        expect([bad, batch.status, codeOf(batch)]).toEqual([bad, status, code]);
        if (code.startsWith("KAI-STREAM") && (bad as Draft)?.type !== "child.spawn") {
          expect(messageOf(array)).toContain("event 2");
          expect(messageOf(batch)).toContain("line 2");
        }
      }
    }
    expect(await allEvents(server.url, run_id)).toHaveLength(2);
  });

  it("that is not JSON is refused with its line, and without its words [RW-ERR-4]", async () => {
    const run_id = await createRun(server.url);
    const torn = `${JSON.stringify(text("ok"))}\n{"type":"text.delta","payload":{"text":sk-secret-key}}\n`;
    const refused = await call(server.url, "POST", runPath(run_id, "events"), torn, ndjson);
    expect([refused.status, codeOf(refused)]).toEqual([422, "KAI-STREAM-PROTO-0001"]);
    expect(messageOf(refused)).toContain("line 2");
    expect(refused.text).not.toContain("secret");
    const array = await call(server.url, "POST", runPath(run_id, "events"), '[{"type": sk-secret-key }]');
    expect([array.status, codeOf(array)]).toEqual([400, "KAI-REQUEST-BODY-0001"]);
    expect(array.text).not.toContain("secret");
    for (const body of ["", "{}", "[]", "null", '"x"', "7"]) {
      expect((await call(server.url, "POST", runPath(run_id, "events"), body)).status).toBe(400);
    }
    expect(await allEvents(server.url, run_id)).toHaveLength(2);
  });

  it("that is too large is refused with 413, told before or while it comes [RW-APPEND-3]", async () => {
    const run_id = await createRun(server.url);
    const raw = await rawConnection(server.url);
    raw.write(
      requestText(server.url, "POST", runPath(run_id, "events"), [
        "Content-Type: application/json",
        `Content-Length: ${limits.batchBytesMax + 1}`,
      ]),
    );
    await raw.until((answer) => answer.includes("KAI-REQUEST-SIZE-0001"));
    expect(raw.text).toMatch(/^HTTP\/1\.1 413 /);
    raw.socket.destroy();

    const chunked = await rawConnection(server.url);
    chunked.write(
      requestText(server.url, "POST", runPath(run_id, "events"), [
        "Content-Type: application/json",
        "Transfer-Encoding: chunked",
      ]),
    );
    const mebibyte = " ".repeat(1024 * 1024);
    for (let i = 0; i <= limits.batchBytesMax / mebibyte.length; i++) {
      chunked.write(`${mebibyte.length.toString(16)}\r\n${mebibyte}\r\n`);
    }
    await chunked.until((answer) => answer.includes("KAI-REQUEST-SIZE-0001"));
    expect(chunked.text).toMatch(/^HTTP\/1\.1 413 /);
    chunked.socket.destroy();

    const many = Array.from({ length: limits.batchEventsMax + 1 }, () => text("x"));
    expect((await tryAppend(server.url, run_id, many)).status).toBe(413);
    const huge = say("tool.end", { call_id: "c", ok: true, output: "x".repeat(limits.eventBytesMax + 1) });
    expect((await tryAppend(server.url, run_id, [huge])).status).toBe(413);
    // A delta is split when it is stored, and counts as one event all the same.
    expect((await tryAppend(server.url, run_id, [text("x".repeat(limits.eventBytesMax + 1))])).status).toBe(
      413,
    );
    expect(await allEvents(server.url, run_id)).toHaveLength(2);
  });

  it("that leaves too much open is refused with 413, until something of it has ended [RW-LIMIT-1] [RW-CONTROL-8]", async () => {
    const run_id = await createRun(server.url);
    const start = (i: number): Draft => say("tool.start", { call_id: `c${i}`, tool: "look" });
    const ask = (i: number): Draft => say("clarify.requested", { clarify_id: `q${i}`, question: "?" });
    const upTo = (max: number, make: (i: number) => Draft) => Array.from({ length: max }, (_, i) => make(i));
    for (const [make, max, end, what] of [
      [start, limits.openCallsMax, say("tool.end", { call_id: "c0", ok: true }), "open calls"],
      [
        ask,
        limits.openRequestsMax,
        say("clarify.resolved", { clarify_id: "q0", answer: "!" }),
        "open requests",
      ],
      [
        (i: number) => say("steer.accepted", { steer_id: `s${i}`, text: "x" }),
        limits.steersWaitingMax,
        say("steer.delivered", { steer_id: "s0", text: "x" }),
        "messages that wait",
      ],
    ] as const) {
      expect((await tryAppend(server.url, run_id, upTo(max, make))).status).toBe(200);
      const refused = await tryAppend(server.url, run_id, [make(max)]);
      expect([refused.status, messageOf(refused)]).toEqual([
        413,
        expect.stringContaining(`a run may have ${max} ${what}`),
      ]);
      expect((await tryAppend(server.url, run_id, [end, make(max)])).status).toBe(200);
    }
  });

  it("costs what its events cost, however many requests of its run there have been", async () => {
    const run_id = await createRun(server.url);
    const asked = Array.from({ length: limits.batchEventsMax / 2 }, (_, i) => [
      say("approval.requested", { approval_id: `a${i}`, tool: "look" }),
      say("approval.resolved", { approval_id: `a${i}`, decision: "once" }),
    ]);
    for (const batch of [asked, asked.map((pair) => pair.map(renamed))])
      expect((await tryAppend(server.url, run_id, batch.flat())).status).toBe(200);
    const refused = await tryAppend(server.url, run_id, [
      say("approval.requested", { approval_id: "b", tool: "look" }),
    ]);
    expect([refused.status, codeOf(refused)]).toEqual([413, "KAI-REQUEST-SIZE-0001"]);
    expect((await tryAppend(server.url, run_id, [lifecycle("done")])).status).toBe(200);
  });

  function renamed(draft: Draft): Draft {
    const { approval_id, ...rest } = draft.payload as { approval_id: string };
    return { ...draft, payload: { ...rest, approval_id: `again_${approval_id}` } } as Draft;
  }

  it("of another type is refused with 415", async () => {
    const run_id = await createRun(server.url);
    const refused = await call(server.url, "POST", runPath(run_id, "events"), "<a/>", {
      "Content-Type": "text/xml",
    });
    expect([refused.status, codeOf(refused)]).toEqual([415, "KAI-REQUEST-TYPE-0001"]);
  });

  it("that is compressed is refused with 415, and said so", async () => {
    const run_id = await createRun(server.url);
    for (const coding of ["gzip", "br", "nonsense"]) {
      const refused = await call(server.url, "POST", runPath(run_id, "events"), [text("a")], {
        "Content-Encoding": coding,
      });
      expect([refused.status, codeOf(refused)]).toEqual([415, "KAI-REQUEST-TYPE-0001"]);
      expect(messageOf(refused)).toContain(coding);
    }
    const plain = { "Content-Encoding": "identity" };
    expect((await call(server.url, "POST", runPath(run_id, "events"), [text("a")], plain)).status).toBe(200);
  });

  it("that is not UTF-8 is refused with 400", async () => {
    const run_id = await createRun(server.url);
    const body = Buffer.from('[{"type":"text.delta","payload":{"text":"\xff"}}]', "latin1");
    for (const type of ["application/json", "application/x-ndjson"]) {
      const raw = await rawConnection(server.url);
      raw.write(
        `POST ${runPath(run_id, "events")} HTTP/1.1\r\nHost: ${new URL(server.url).host}\r\nConnection: close\r\n` +
          `Content-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n`,
      );
      raw.write(body);
      await raw.ended;
      expect(raw.text).toMatch(/^HTTP\/1\.1 400 /);
      expect(raw.text).toContain("KAI-REQUEST-BODY-0001");
    }
  });

  it.each(["runwire", "koder"])(
    "with JSON that is too deep, too wide or overflows is refused, also far beyond the limit: %s [RW-DRAFT-4]",
    async (dialect) => {
      const run_id = await createRun(server.url);
      const deep = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
      const wide = `{${Array.from({ length: limits.jsonKeysMax + 1 }, (_, i) => `"k${i}":0`).join(",")}}`;
      for (const input of [deep(limits.jsonDepthMax), deep(100_000), wide, "1e999", "[-1e400]"]) {
        const body = `[{"type":"tool.start","payload":{"call_id":"c","tool":"t","input":${input}}}]`;
        const refused = await call(server.url, "POST", runPath(run_id, `events?dialect=${dialect}`), body);
        expect([input.slice(0, 9), refused.status, codeOf(refused)]).toEqual([
          input.slice(0, 9),
          422,
          "KAI-STREAM-PROTO-0001",
        ]);
      }
      expect(await allEvents(server.url, run_id)).toHaveLength(2);
      const fits = `[{"type":"tool.start","payload":{"call_id":"c","tool":"t","input":${deep(limits.jsonDepthMax - 1)}}}]`;
      expect(
        (await call(server.url, "POST", runPath(run_id, `events?dialect=${dialect}`), fits)).status,
      ).toBe(200);
    },
  );

  it("in another dialect is held to the limits of drafts: what it is read as is one [RW-DRAFT-5]", async () => {
    const deep = (levels: number) => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`) as unknown;
    const wide = (keys: number) => Object.fromEntries(Array.from({ length: keys }, (_, i) => [`k${i}`, 0]));
    const { jsonDepthMax, jsonKeysMax } = limits;
    const said: { readonly [dialect: string]: (value: unknown) => object } = {
      loom: (state) => ({ type: "values", state }),
      "loom-export": (state) => ({ Values: state }),
      runtime: (value) => ({ type: "x.acme.score", payload: { value } }),
      "runtime-jsonrpc": (value) => ({
        ...{ jsonrpc: "2.0", method: "event" },
        params: { type: "x.acme.score", payload: { value } },
      }),
    };
    for (const [dialect, message] of Object.entries(said)) {
      const run_id = await createRun(server.url);
      const send = (value: unknown) =>
        call(server.url, "POST", runPath(run_id, `events?dialect=${dialect}`), [message(value)]);
      for (const value of [deep(jsonDepthMax), wide(jsonKeysMax)]) {
        const refused = await send(value);
        expect([dialect, refused.status, codeOf(refused)]).toEqual([dialect, 422, "KAI-STREAM-PROTO-0001"]);
        expect(messageOf(refused)).toMatch(
          /event 1: `payload` (?:is nested deeper than 64|has more than 10000 keys)/,
        );
      }
      expect(await allEvents(server.url, run_id)).toHaveLength(2);
      for (const value of [deep(jsonDepthMax - 1), wide(jsonKeysMax - 1)])
        expect([dialect, (await send(value)).status]).toEqual([dialect, 200]);
    }
  });

  it.each([...dialects.keys()])(
    "of one large value that is no event is refused as fast as it is read: %s [RW-DRAFT-2]",
    async (dialect) => {
      const run_id = await createRun(server.url);
      const many = 6_000_000;
      for (const value of [`"${"a".repeat(many)}"`, `[${"0,".repeat(many)}0]`]) {
        const before = process.cpuUsage();
        const refused = await call(
          server.url,
          "POST",
          runPath(run_id, `events?dialect=${dialect}`),
          `[${value}]`,
        );
        const { user, system } = process.cpuUsage(before);
        expect([refused.status, codeOf(refused)]).toEqual([422, "KAI-STREAM-PROTO-0001"]);
        // Seconds of the processor, with those of the server, which is in this process: a third of one where it is read,
        // and more than six where it is looked at piece by piece.
        expect((user + system) / 1e6).toBeLessThan(2.5);
      }
    },
  );
});
