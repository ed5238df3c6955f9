// Answers that have an end, and readers that do not take them.

import { once } from "node:events";
import { startGateway } from "@runwire/server";
import { afterEach, describe, expect, it, vi } from "vitest";
import { append, call, createRun, runPath, say } from "./calls.js";
import { type RawConnection, rawConnection, requestText } from "./raw-http.js";
import { underTest } from "./under-test.js";

const server = underTest(startGateway);

afterEach(() => {
  vi.useRealTimers();
});

const mebibyte = 1024 * 1024;
/** More than the buffers of both ends hold. */
const answerBytes = 14 * mebibyte;

/** The addresses of a page, a blob and a replay, each of which is as large. */
async function large(): Promise<{ readonly page: string; readonly blob: string; readonly replay: string }> {
  const paged = await createRun(server.url);
  // Smaller members are not spilled.
  const members = Object.fromEntries(Array.from({ length: 32 }, (_, i) => [`m${i}`, "x".repeat(32 * 1024)]));
  for (let bytes = 0; bytes < answerBytes; bytes += mebibyte)
    await append(server.url, paged, say("custom", members));
  const spilled = await createRun(server.url);
  await append(server.url, spilled, say("tool.start", { call_id: "call", tool: "shell" }));
  const output = "x".repeat(7 * mebibyte);
  await append(server.url, spilled, say("tool.end", { call_id: "call", ok: true, output }));
  const log = await call(server.url, "GET", runPath(spilled, "events"));
  const [ref] = /blob_[0-9a-f]{64}/.exec(log.text) ?? [];
  return {
    page: runPath(paged, "events?dialect=runwire&detail=full&limit=1000"),
    blob: `/v1/blobs/${ref}`,
    replay: runPath(paged, "replay.jsonl?dialect=runwire&detail=full"),
  };
}

/** One who has read that there is an answer, and stops. From here on the server's timers are held. */
async function stopped(path: string): Promise<RawConnection> {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const raw = await rawConnection(server.url);
  raw.write(requestText(server.url, "GET", path, ["Connection: close"]));
  await raw.until((answer) => answer.includes("\r\n\r\n"));
  raw.socket.pause();
  return raw;
}

function isWhole({ text }: RawConnection): boolean {
  const headBytes = text.indexOf("\r\n\r\n") + 4;
  if (/^transfer-encoding: chunked/im.test(text.slice(0, headBytes))) return text.endsWith("\r\n0\r\n\r\n");
  const told = Number(/^content-length: (\d+)/im.exec(text)?.[1]);
  expect(told).toBeGreaterThan(6 * mebibyte);
  return text.length - headBytes === told;
}

const stalledMs = 60_000;

describe("an answer", () => {
  it.each(["page", "blob", "replay"] as const)(
    "with a %s of which nothing is taken for a minute is broken off",
    async (kind) => {
      const raw = await stopped((await large())[kind]);
      vi.advanceTimersByTime(stalledMs);
      raw.socket.resume();
      await raw.ended;
      expect(isWhole(raw)).toBe(false);
    },
  );

  it.each(["page", "replay"] as const)(
    "with a %s of which something is taken goes on, however long it takes",
    async (kind) => {
      const raw = await stopped((await large())[kind]);
      for (let n = 0; n < 2; n++) {
        vi.advanceTimersByTime(stalledMs - 1);
        const enough = raw.socket.bytesRead + 5 * mebibyte;
        raw.socket.resume();
        // More than was on its way before: some of it the server has given since then.
        while (raw.socket.bytesRead < enough) await once(raw.socket, "data");
        raw.socket.pause();
      }
      vi.advanceTimersByTime(stalledMs - 1);
      raw.socket.resume();
      await raw.ended;
      expect(isWhole(raw)).toBe(true);
    },
  );
});
