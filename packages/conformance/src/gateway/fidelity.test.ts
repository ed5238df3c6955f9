// What a producer sends comes out equal, whatever its strings and members are.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Draft, limits } from "@runwire/protocol";
import { type Gateway, startGateway } from "@runwire/server";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { arbitraryDraftOf, namedTypes } from "../arbitraries.js";
import { allEvents, append, call, codeOf, createRun, lifecycle, runPath, text } from "./calls.js";
import { isSoak } from "./chance.js";
import { readAll, streamPath, wireNames } from "./readers.js";
import { joined } from "./story.js";

const folder = mkdtempSync(join(tmpdir(), "runwire-fidelity-"));
let gateway: Gateway;
let url: string;

beforeAll(async () => {
  gateway = await startGateway({ port: 0, dataFolder: folder, durability: "os" });
  url = gateway.url;
});

afterAll(async () => {
  await gateway.close();
  rmSync(folder, { recursive: true });
});

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
          const own = drafts.map(({ child_id: _, ...draft }) => draft as Draft);
          const run_id = await createRun(url);
          await append(url, run_id, ...own, lifecycle("aborted"));
          for (const wire of wireNames) {
            const read = await readAll(wire, url, streamPath({ run_id, dialect: "runwire", detail: "full" }));
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
    const run_id = await createRun(url);
    const payload =
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":2}},"toString":null,"value":{"__proto__":3}}';
    const body = `[{"type":"custom","payload":${payload}},{"type":"usage","payload":{"__proto__":5,"constructor":7,"tokens":1}},{"type":"state.values","payload":${payload}},{"type":"run.lifecycle","payload":{"state":"done","__proto__":{"state":"error"}}}]`;
    expect((await call(url, "POST", runPath(run_id, "events"), body)).status).toBe(200);
    const page = await call(url, "GET", runPath(run_id, "events?dialect=runwire"));
    expect(page.text).toContain(payload);
    expect(page.text).toContain('{"state":"done","__proto__":{"state":"error"}');
    const snapshot = await call(url, "GET", runPath(run_id, "snapshot"));
    expect(snapshot.text).toContain(`"values":${payload}`);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    const controlBody = await call(url, "POST", runPath(run_id, "abort"), '{"__proto__":{"reason":"x"}}');
    expect([controlBody.status, codeOf(controlBody)]).toEqual([422, "KAI-REQUEST-BODY-0002"]);
  });

  it("joins to the same text, also where a character is cut between two deltas [RW-ENV-3]", async () => {
    const run_id = await createRun(url);
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
    await append(url, run_id, ...units.map((unit) => text(unit)), lifecycle("done"));
    for (const wire of wireNames) {
      for (const detail of ["default", "full"]) {
        const { events } = await readAll(wire, url, streamPath({ run_id, detail }));
        expect(joined(events, "text.delta")).toBe(units.join(""));
      }
    }
    const big = `${"é".repeat(50_000)}👩‍💻${"x".repeat(200_000)}`;
    const other = await createRun(url);
    await append(url, other, text(big), lifecycle("done"));
    for (const detail of ["default", "full"]) {
      const { events } = await readAll("sse", url, streamPath({ run_id: other, detail }));
      expect(joined(events, "text.delta")).toBe(big);
    }
    const pieces = (await allEvents(url, other)).filter((e) => e.type === "text.delta");
    for (const { payload } of pieces) {
      expect(Buffer.byteLength((payload as { text: string }).text)).toBeLessThanOrEqual(limits.deltaBytesMax);
    }
  });
});
