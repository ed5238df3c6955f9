// What a producer sends comes out equal, whatever its strings and members are.

import { type Draft, type Facts, limits } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { arbitraryDraftOf, namedTypes } from "../arbitraries.js";
import { arbitraryJson, arbitraryText } from "../arbitrary-json.js";
import { allEvents, append, call, codeOf, createRun, lifecycle, runPath, text } from "./calls.js";
import { isSoak } from "./chance.js";
import { readAll, streamPath, wireNames } from "./readers.js";
import { joined } from "./story.js";
import { underTest } from "./under-test.js";

const server = underTest(startGateway);

/** A run asks under an id once. */
function askedOnce(drafts: readonly Draft[]): readonly Draft[] {
  const asked = new Set<unknown>();
  return drafts.filter(({ type, payload }) => {
    if (!type.endsWith(".requested")) return true;
    const { approval_id: id = (payload as Facts).clarify_id } = payload as Facts;
    if (id === undefined) return true;
    const isNew = !asked.has(id);
    asked.add(id);
    return isNew;
  });
}

describe("what a producer sends", () => {
  it("comes out equal on every transport, whatever its strings and members are [RW-SSE-2] [RW-ENV-3]", {
    timeout: 300_000,
  }, async () => {
    const control = namedTypes.filter(
      (type) => !["run.lifecycle", "child.spawn"].includes(type) && !/delta|output/.test(type),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...control).chain(arbitraryDraftOf), { minLength: 1, maxLength: 30 }),
        async (drafts) => {
          const own = askedOnce(drafts.map(({ child_id: _, ...draft }) => draft as Draft));
          const run_id = await createRun(server.url);
          await append(server.url, run_id, ...own, lifecycle("aborted"));
          for (const wire of wireNames) {
            const read = await readAll(
              wire,
              server.url,
              streamPath({ run_id, dialect: "runwire", detail: "full" }),
            );
            const said = read.events
              .slice(2, 2 + own.length)
              .map(({ type, payload, scope }) => ({ type, payload, scope }));
            expect(said).toEqual(own.map(({ type, payload, scope }) => ({ type, payload, scope })));
          }
        },
      ),
      { numRuns: isSoak ? 500 : 25 },
    );
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it("keeps members named like those of every object, and pollutes none [RW-ENV-3]", async () => {
    const run_id = await createRun(server.url);
    const payload =
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":2}},"toString":null,"value":{"__proto__":3}}';
    const body = `[{"type":"custom","payload":${payload}},{"type":"usage","payload":{"__proto__":5,"constructor":7,"tokens":1}},{"type":"state.values","payload":${payload}},{"type":"run.lifecycle","payload":{"state":"done","__proto__":{"state":"error"}}}]`;
    expect((await call(server.url, "POST", runPath(run_id, "events"), body)).status).toBe(200);
    const page = await call(server.url, "GET", runPath(run_id, "events?dialect=runwire"));
    expect(page.text).toContain(payload);
    expect(page.text).toContain('{"state":"done","__proto__":{"state":"error"}');
    const snapshot = await call(server.url, "GET", runPath(run_id, "snapshot"));
    expect(snapshot.text).toContain(`"values":${payload}`);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    const controlBody = await call(
      server.url,
      "POST",
      runPath(run_id, "abort"),
      '{"__proto__":{"reason":"x"}}',
    );
    expect([controlBody.status, codeOf(controlBody)]).toEqual([422, "KAI-REQUEST-BODY-0002"]);
  });

  it("joins to the same text, also where a character is cut between two deltas [RW-ENV-3]", async () => {
    const run_id = await createRun(server.url);
    const units = [
      "\ud83d",
      "\ude00",
      "\ud800",
      "x",
      "\udfff",
      "\u0000",
      "\r",
      "\n",
      "\u2028",
      "\u2029",
      "\ufeff",
    ];
    await append(server.url, run_id, ...units.map((unit) => text(unit)), lifecycle("done"));
    for (const wire of wireNames) {
      for (const detail of ["default", "full"]) {
        const { events } = await readAll(wire, server.url, streamPath({ run_id, detail }));
        expect(joined(events, "text.delta")).toBe(units.join(""));
      }
    }
    const big = `${"é".repeat(50_000)}👩‍💻${"x".repeat(200_000)}`;
    const other = await createRun(server.url);
    await append(server.url, other, text(big), lifecycle("done"));
    for (const detail of ["default", "full"]) {
      const { events } = await readAll("sse", server.url, streamPath({ run_id: other, detail }));
      expect(joined(events, "text.delta")).toBe(big);
    }
    const pieces = (await allEvents(server.url, other)).filter((e) => e.type === "text.delta");
    for (const { payload } of pieces) {
      expect(Buffer.byteLength((payload as { text: string }).text)).toBeLessThanOrEqual(limits.deltaBytesMax);
    }
  });

  /** As it was before its large members were spilled. */
  async function unspilled(payload: Facts): Promise<Facts> {
    const { spilled = {}, blob_ref: _, ...kept } = payload;
    const whole: { [member: string]: unknown } = { ...kept };
    for (const [name, { blob_ref, media_type }] of Object.entries(spilled as { [name: string]: Facts })) {
      // As bytes: `text()` would take a byte order mark for none of the text.
      const response = await fetch(`${server.url}/v1/blobs/${blob_ref as string}`);
      const content = Buffer.from(await response.arrayBuffer()).toString();
      whole[name] = media_type === "application/json" ? JSON.parse(content) : content;
    }
    return whole;
  }

  const sent: { readonly [how: string]: (run_id: string, drafts: readonly Draft[]) => Promise<unknown> } = {
    "a batch": (run_id, drafts) => append(server.url, run_id, ...drafts),
    "a batch of lines": async (run_id, drafts) => {
      const lines = drafts.map((draft) => JSON.stringify(draft)).join("\r\n");
      const type = { "Content-Type": "application/x-ndjson" };
      expect((await call(server.url, "POST", runPath(run_id, "events"), lines, type)).status).toBe(200);
    },
    "a session": async (run_id, drafts) => {
      const bytes = Buffer.from(drafts.map((draft) => `${JSON.stringify(draft)}\n`).join(""));
      // In pieces that cut lines and characters anywhere.
      const pieces = new ReadableStream<Uint8Array>({
        start(controller) {
          for (let at = 0; at < bytes.length; at += 9973) controller.enqueue(bytes.subarray(at, at + 9973));
          controller.close();
        },
      });
      const response = await fetch(server.url + runPath(run_id, "events"), {
        method: "POST",
        body: pieces,
        duplex: "half",
        headers: { "Content-Type": "application/x-ndjson" },
      } as RequestInit);
      expect(await response.text()).not.toContain("error");
    },
  };

  const deepArray = JSON.parse(`${"[".repeat(60)}1e308${"]".repeat(60)}`) as unknown;
  /** `value` is so long that the JSON text of the member has that many bytes. */
  const ofBytes = (bytes: number, unit: string): string => {
    const unitBytes = Buffer.byteLength(JSON.stringify(unit)) - 2;
    const count = Math.floor((bytes - 2) / unitBytes);
    return unit.repeat(count) + "x".repeat(bytes - 2 - count * unitBytes);
  };
  const border = [-1, 0, 1].map((by) => limits.memberBytesMax + by);
  const odd: readonly unknown[] = [
    ...[null, true, false, 0, 1e308, -1e308, 5e-324, 2 ** 53, 0.1, "", " ", [], {}, [[]], [null]],
    deepArray,
    JSON.parse(
      '{"":{"":[""]},"toString":1,"hasOwnProperty":null,"__proto__":{"x":1},"constructor":{"prototype":2}}',
    ),
    ...border.flatMap((bytes) =>
      ["x", "é", "\uD800", "\u0000", "👩‍💻", "\r\n"].map((unit) => ofBytes(bytes, unit)),
    ),
    ...border.map((bytes) => [ofBytes(bytes - 2, "\uDFFF")]),
    { spilled: { value: "not one of ours" }, blob_ref: "blob_x", large: ofBytes(70_000, "\u2028") },
  ];

  it.each(Object.entries(sent))(
    "in %s comes out equal, whether or not it is spilled [RW-ENV-3] [RW-BLOB-3]",
    async (_, send) => {
      const run_id = await createRun(server.url);
      const drafts = odd.map((value): Draft => ({ type: "custom", payload: { name: "odd", value } }));
      await send(run_id, drafts);
      await append(server.url, run_id, lifecycle("aborted"));
      for (const wire of wireNames) {
        const { events } = await readAll(
          wire,
          server.url,
          streamPath({ run_id, dialect: "runwire", detail: "full" }),
        );
        const said = await Promise.all(events.slice(2, -1).map(({ payload }) => unspilled(payload as Facts)));
        expect(said).toEqual(drafts.map(({ payload }) => payload));
      }
      const spilt = (await allEvents(server.url, run_id)).filter(({ payload }) => "spilled" in payload);
      expect(spilt.length).toBeGreaterThan(6);
      expect(spilt.length).toBeLessThan(odd.length / 2);
    },
  );

  it("comes out equal of a blob, whatever else is in it [RW-BLOB-3]", { timeout: 300_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryJson, arbitraryText, async (value, around) => {
        const run_id = await createRun(server.url);
        const payload = {
          value: [value, ofBytes(70_000, "x")],
          note: `${around}${ofBytes(70_000, "y")}${around}`,
        };
        await append(server.url, run_id, { type: "custom", payload } as Draft);
        const [, , event] = await allEvents(server.url, run_id);
        const stored = event?.payload as Facts;
        expect(Object.keys(stored.spilled as object).sort()).toEqual(["note", "value"]);
        expect(await unspilled(stored)).toEqual(payload);
      }),
      { numRuns: isSoak ? 1000 : 40 },
    );
  });
});
