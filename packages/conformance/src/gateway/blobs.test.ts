// Large outputs through a running gateway: spilled, read in whole and in parts, shown to nobody else, gone with
// their runs.

import { once } from "node:events";
import { readdirSync, rmSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { type Facts, limits } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allEvents, append, call, codeOf, control, createRun, runPath, say, tryAppend } from "./calls.js";
import { rawConnection } from "./raw-http.js";
import { underTest } from "./under-test.js";

const server = underTest(startGateway);

let outputs = 0;

/** A text that is spilled, another one each time. */
function largeText(): string {
  outputs += 1;
  return `<script>alert(1)</script> €${outputs} ${"0123456789".repeat(limits.memberBytesMax / 10)}`;
}

const toolEnd = (output: unknown) => say("tool.end", { call_id: "call_1", ok: true, output });

async function lastPayload(run_id: string): Promise<Facts> {
  return (await allEvents(server.url, run_id)).at(-1)?.payload as Facts;
}

/** A run with a spilled output, and the ref of it. */
async function spilled(output: unknown = largeText()): Promise<{ run_id: string; ref: string }> {
  const run_id = await createRun(server.url);
  await append(server.url, run_id, toolEnd(output));
  return { run_id, ref: (await lastPayload(run_id)).blob_ref as string };
}

const read = (ref: string, headers: { readonly [name: string]: string } = {}) =>
  call(server.url, "GET", `/v1/blobs/${ref}`, undefined, headers);

const blobFiles = (): readonly string[] =>
  readdirSync(join(server.folder, "blobs"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => `blob_${name}`);

describe("a large output", () => {
  it("is left out of its event, which says where it is [RW-BLOB-1]", async () => {
    const output = largeText();
    const { run_id, ref } = await spilled(output);
    expect(await lastPayload(run_id)).toEqual({
      call_id: "call_1",
      ok: true,
      blob_ref: ref,
      spilled: {
        output: {
          blob_ref: ref,
          bytes: Buffer.byteLength(output),
          media_type: "text/plain; charset=utf-8",
          preview: output.slice(0, 1024),
        },
      },
    });
    const { body } = await call(server.url, "GET", runPath(run_id, "snapshot"));
    const { tools } = body.transcript as { tools: { [call_id: string]: Facts } };
    expect(tools.call_1).toMatchObject({ status: "ok", blob_ref: ref });
    const koder = await allEvents(server.url, run_id, { dialect: "koder" });
    expect(koder.at(-1)?.payload).toMatchObject({ blob_ref: ref });
    expect((await read(ref)).text).toBe(output);
  });

  it.each([
    ["a list", Array.from({ length: 9000 }, (_, i) => `line ${i}`)],
    ["an object with a member called __proto__", JSON.parse(`{"__proto__":"${"x".repeat(70_000)}"}`)],
    ["a text with a lone surrogate", `\uD800${"x".repeat(70_000)}`],
  ])("that is %s is its JSON [RW-BLOB-3]", async (_, output) => {
    const { ref } = await spilled(output);
    const reply = await read(ref);
    expect(reply.headers.get("content-type")).toBe("application/json");
    expect(JSON.parse(reply.text)).toEqual(output);
  });

  it("of a child is found in the logs of all its ancestors", async () => {
    const run_id = await createRun(server.url);
    const child_id = `run_child.${run_id}`;
    await append(server.url, run_id, say("child.spawn", { child_id, prompt: "go" }), {
      ...toolEnd(largeText()),
      child_id,
    });
    const { blob_ref } = await lastPayload(child_id);
    expect((await lastPayload(run_id)).blob_ref).toBe(blob_ref);
    expect((await read(blob_ref as string)).status).toBe(200);
  });

  it("is spilled from whatever a person says, and the same answer again is the same", async () => {
    const run_id = await createRun(server.url);
    await append(server.url, run_id, say("approval.requested", { approval_id: "appr_1" }));
    const answer = (text: string) =>
      control(server.url, run_id, "approvals/appr_1", { decision: "once", input: { text } });
    const [said, other] = [largeText(), largeText()];
    expect((await answer(said)).status).toBe(200);
    expect((await lastPayload(run_id)).input).toEqual({});
    expect((await answer(said)).status).toBe(200);
    expect(codeOf(await answer(other))).toBe("KAI-RUN-REQUEST-0002");
    expect((await control(server.url, run_id, "steer", { text: other })).status).toBe(202);
    const { text, spilled } = (await lastPayload(run_id)) as { text: string; spilled: { text: Facts } };
    expect(text).toBe(other.slice(0, 1024));
    expect((await read(spilled.text.blob_ref as string)).text).toBe(other);
  });

  it("counts for the size of its event: over 8 MiB it is refused, and leaves no blob [RW-BLOB-5]", async () => {
    const run_id = await createRun(server.url);
    const before = blobFiles();
    const refused = await tryAppend(server.url, run_id, [toolEnd("x".repeat(limits.eventBytesMax))]);
    expect([refused.status, codeOf(refused)]).toEqual([413, "KAI-REQUEST-SIZE-0001"]);
    const bad = await tryAppend(server.url, run_id, [
      toolEnd(largeText()),
      say("run.lifecycle", { state: "paused" }),
      say("run.lifecycle", { state: "done" }),
    ]);
    expect(bad.status).toBe(409);
    expect(blobFiles()).toEqual(before);
  });
});

describe("a blob", () => {
  it("is served so that a browser runs nothing in it and nobody keeps it [RW-BLOB-6]", async () => {
    const { ref } = await spilled();
    const { headers } = await read(ref);
    expect(Object.fromEntries(headers)).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "content-disposition": `attachment; filename="${ref}"`,
      "x-content-type-options": "nosniff",
      "content-security-policy": "sandbox; default-src 'none'",
      "cross-origin-resource-policy": "same-origin",
      "cache-control": "no-store",
      "accept-ranges": "bytes",
      etag: `"${ref}"`,
    });
  });

  it("is read in any part [RW-BLOB-3]", async () => {
    const output = largeText();
    const whole = Buffer.from(output);
    const { ref } = await spilled(output);
    const place = fc.oneof(fc.nat(whole.length + 10), fc.constantFrom(0, whole.length - 1, whole.length));
    await fc.assert(
      fc.asyncProperty(fc.option(place), fc.option(place), async (first, last) => {
        fc.pre(first !== null || last !== null);
        const asked = `bytes=${first ?? ""}-${last ?? ""}`;
        const response = await fetch(`${server.url}/v1/blobs/${ref}`, { headers: { Range: asked } });
        const body = Buffer.from(await response.arrayBuffer());
        const from = first ?? Math.max(0, whole.length - (last ?? 0));
        const to = first === null ? whole.length - 1 : Math.min(last ?? whole.length, whole.length - 1);
        if (first !== null && last !== null && last < first) {
          expect([response.status, body.length]).toEqual([200, whole.length]);
        } else if (from >= whole.length) {
          expect(response.status).toBe(416);
          expect(response.headers.get("content-range")).toBe(`bytes */${whole.length}`);
          expect(body.toString()).toContain("KAI-BLOB-RANGE-0001");
        } else {
          expect(response.status).toBe(206);
          expect(response.headers.get("content-range")).toBe(`bytes ${from}-${to}/${whole.length}`);
          expect(body.equals(whole.subarray(from, to + 1))).toBe(true);
        }
      }),
      { numRuns: 100 },
    );
  });

  it.each([
    ["several ranges", { Range: "bytes=0-1,4-5" }, 200],
    ["a range of something else", { Range: "lines=0-1" }, 200],
    ["a range of nothing", { Range: "bytes=-" }, 200],
    ["a range of another version", { Range: "bytes=0-1", "If-Range": '"blob_other"' }, 200],
    ["a range of a version that is only alike", { Range: "bytes=0-1", "If-Range": 'W/"REF"' }, 200],
    ["a range of this version", { Range: "bytes=0-1", "If-Range": '"REF"' }, 206],
    ["what the reader has", { "If-None-Match": '"blob_other", W/"REF"' }, 304],
    ["what the reader has not", { "If-None-Match": '"blob_other"' }, 200],
  ])("is told apart when asked for %s [RW-BLOB-3]", async (_, headers, status) => {
    const { ref } = await spilled();
    const asked = Object.fromEntries(Object.entries(headers).map(([n, v]) => [n, v.replace("REF", ref)]));
    const reply = await read(ref, asked);
    expect(reply.status).toBe(status);
    if (status === 304) expect(reply.text).toBe("");
  });

  it("that nobody may read is as one that never was [RW-BLOB-4]", async () => {
    const run_id = await createRun(server.url);
    const unknown = `blob_${"0".repeat(64)}`;
    // A ref that a producer wrote itself opens nothing.
    const entry = { blob_ref: unknown, bytes: 1, media_type: "text/html", preview: "" };
    await append(server.url, run_id, say("tool.end", { call_id: "c", ok: true, blob_ref: unknown }));
    await append(server.url, run_id, say("custom", { spilled: { note: entry } }));
    expect(await lastPayload(run_id)).toEqual({ spilled: { note: entry } });
    const { ref } = await spilled();
    for (const wrong of [
      unknown,
      "blob_",
      "x",
      "%2e%2e%2f%2e%2e%2frunwire.db",
      "..%2f..%2frunwire.db",
      `${ref}%00`,
      "%ff",
      ref.toUpperCase(),
      ref.slice(5),
      `${ref}0`,
    ]) {
      const reply = await read(wrong);
      expect([wrong, reply.status, reply.text]).toEqual([
        wrong,
        404,
        '{"error":{"code":"KAI-BLOB-MISSING-0001","message":"blob not found","retry":false}}\n',
      ]);
    }
  });

  it("goes with the last run that refers to it [RW-BLOB-5]", async () => {
    const output = largeText();
    const [first, second] = [await spilled(output), await spilled(output)];
    expect(second.ref).toBe(first.ref);
    await call(server.url, "DELETE", `/v1/agent/runs/${first.run_id}`);
    expect((await read(first.ref)).text).toBe(output);
    await call(server.url, "DELETE", `/v1/agent/runs/${second.run_id}`);
    expect(blobFiles()).not.toContain(first.ref);
    expect((await read(first.ref)).status).toBe(404);
    expect((await spilled(output)).ref).toBe(first.ref);
    expect((await read(first.ref)).text).toBe(output);
  });

  it("whose bytes are not what they were is not shown", async () => {
    const { ref } = await spilled();
    const path = join(server.folder, "blobs", "default", ref.slice(5, 7), ref.slice(5));
    rmSync(path);
    expect(codeOf(await read(ref))).toBe("KAI-SERVER-STORE-0003");
  });

  it("waits for a reader that has stopped, and keeps nobody else waiting", async () => {
    const { ref } = await spilled("x".repeat(7 * 1024 * 1024));
    const before = process.memoryUsage().arrayBuffers;
    const slow = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const connection = await rawConnection(server.url);
        connection.write(`GET /v1/blobs/${ref} HTTP/1.1\r\nHost: ${new URL(server.url).host}\r\n\r\n`);
        await connection.until((text) => text.includes("\r\n\r\n"));
        connection.socket.pause();
        return connection;
      }),
    );
    const [quick] = (await once(get(`${server.url}/v1/blobs/${ref}`), "response")) as [NodeJS.ReadableStream];
    let bytes = 0;
    for await (const chunk of quick) bytes += (chunk as Buffer).length;
    expect(bytes).toBe(7 * 1024 * 1024);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(20 * 4 * 1024 * 1024);
    for (const { socket } of slow) socket.destroy();
  });
});
