import { RunwireError } from "@runwire/protocol";
import { describe, expect, test } from "vitest";
import { ask } from "./http.js";
import { limits } from "./limits.js";
import { refusalOf } from "./refusal.js";

const nowMs = Date.parse("2026-01-01T00:00:00Z");

function refusal(status: number, body = "", retryAfter?: string) {
  const headers = retryAfter === undefined ? {} : { "retry-after": retryAfter };
  return refusalOf(new Response(body, { status, headers }), nowMs);
}

describe("a refusal", () => {
  test.each([400, 401, 403, 404, 409, 410, 413, 422])("with %i is final", async (status) => {
    expect(await refusal(status)).toMatchObject({ again: false });
  });

  test.each([408, 429, 500, 502, 503, 504, 507])("with %i may be tried again", async (status) => {
    expect(await refusal(status)).toMatchObject({ again: true });
  });

  test("whose body breaks off is an answer that was lost", async () => {
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('{"error":{"code":"KAI-RUN'));
        controller.error(new Error("cut"));
      },
    });
    const cut: typeof fetch = async () => new Response(body, { status: 404 });
    const answer = await ask({ base: "http://a", fetch: cut }, { path: "/" });
    expect(answer).toMatchObject({ ok: false, again: true, error: { code: "KAI-STREAM-CONN-0003" } });
  });

  test("is what the server says it is, whatever its status", async () => {
    const error = new RunwireError("KAI-SERVER-STORE-0002", "0 bytes left");
    expect(await refusal(400, JSON.stringify(error))).toMatchObject({
      again: true,
      error: { code: "KAI-SERVER-STORE-0002", message: "storage full: 0 bytes left" },
    });
  });

  test("with a code this client does not know keeps the server's words", async () => {
    const body = JSON.stringify({ error: { code: "KAI-NEW-0001", message: "odd", retry: false } });
    expect((await refusal(400, body)).error.message).toContain("KAI-NEW-0001 odd");
  });

  test.each([
    ["2", 2000],
    ["Thu, 01 Jan 2026 00:00:07 GMT", 7000],
    ["Wed, 31 Dec 2025 00:00:00 GMT", 0],
    ["999999999", limits.retryMsMax],
    ["soon", 0],
  ])("with Retry-After %j waits %i ms", async (field, retryMs) => {
    expect(await refusal(503, "", field)).toMatchObject({ retryMs });
  });
});
