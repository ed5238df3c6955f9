// WebSocket frames as no proper client sends them, written by hand. A page of another site is refused before the
// upgrade: http.test.ts.

import { limits } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Bystander, bystander } from "./bystander.js";
import { append, createRun, lifecycle, text } from "./calls.js";
import { type RawConnection, rawConnection, requestText, upgradeLines } from "./raw-http.js";
import { openReading, streamPath } from "./readers.js";
import { underTest } from "./under-test.js";

let other: Bystander;

const server = underTest(startGateway);

beforeEach(async () => {
  other = await bystander(server.url);
});

afterEach(async () => {
  expect(await other.leave()).toBeGreaterThan(0);
});

const opcodes = { more: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 };

interface FrameOptions {
  readonly fin?: boolean;
  readonly masked?: boolean;
  readonly reserved?: number;
}

/**
 * ```
 * FIN RSV OPCODE │ MASK LENGTH │ longer length │ mask │ payload
 * ```
 */
function frame(
  opcode: number,
  payload: string | Uint8Array,
  { fin = true, masked = true, reserved = 0 }: FrameOptions = {},
): Buffer {
  const content = Buffer.from(payload as string);
  const first = (fin ? 0x80 : 0) | (reserved << 4) | opcode;
  const mask = masked ? 0x80 : 0;
  const long = Buffer.alloc(8);
  long.writeBigUInt64BE(BigInt(content.length));
  const size =
    content.length < 126
      ? Buffer.from([first, mask | content.length])
      : content.length < 65_536
        ? Buffer.concat([Buffer.from([first, mask | 126]), long.subarray(6)])
        : Buffer.concat([Buffer.from([first, mask | 127]), long]);
  // A mask of zeros leaves the payload as it is.
  return Buffer.concat([size, masked ? Buffer.alloc(4) : Buffer.alloc(0), content]);
}

const handshake = (path: string): string => requestText(server.url, "GET", path, upgradeLines);

async function upgraded(path: string): Promise<RawConnection> {
  const raw = await rawConnection(server.url);
  raw.write(handshake(path));
  await raw.until((answer) => answer.includes("\r\n\r\n"));
  expect(raw.text).toMatch(/^HTTP\/1\.1 101 /);
  return raw;
}

/** The code of the server's close frame, once it has come. */
async function closeCode(raw: RawConnection): Promise<number> {
  await Promise.race([raw.ended, raw.until((answer) => codeIn(answer) !== undefined)]);
  return codeIn(raw.text) ?? 0;
}

function codeIn(answer: string): number | undefined {
  const bytes = Buffer.from(answer.slice(answer.indexOf("\r\n\r\n") + 4), "latin1");
  for (let at = 0; at + 2 <= bytes.length; ) {
    const short = (bytes[at + 1] as number) & 0x7f;
    const wide = short === 126 ? 2 : short === 127 ? 8 : 0;
    if (at + 2 + wide > bytes.length) return undefined;
    const size =
      wide === 0 ? short : wide === 2 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2));
    const from = at + 2 + wide;
    if (((bytes[at] as number) & 0x0f) === opcodes.close && from + 2 <= bytes.length)
      return bytes.readUInt16BE(from);
    at = from + size;
  }
  return undefined;
}

const paths = async (): Promise<readonly string[]> => {
  const run_id = await createRun(server.url);
  return [streamPath({ run_id }), `/v1/agent/stream?runs=${run_id}`];
};

const large = Buffer.alloc(64 * 1024 + 1, 0x20);

describe("a WebSocket", () => {
  it.each([
    ["a binary frame", [frame(opcodes.binary, "x")], 1003],
    ["a frame without a mask", [frame(opcodes.text, "x", { masked: false })], 1002],
    ["text that is no UTF-8", [frame(opcodes.text, Buffer.from([0xc3, 0x28]))], 1007],
    ["a surrogate in bytes", [frame(opcodes.text, Buffer.from([0xed, 0xa0, 0x80]))], 1007],
    ["a message over 64 KiB", [frame(opcodes.text, large)], 1009],
    [
      "pieces over 64 KiB together",
      [
        frame(opcodes.text, large.subarray(0, 40_000), { fin: false }),
        frame(opcodes.more, large.subarray(0, 40_000), { fin: false }),
      ],
      1009,
    ],
    ["a length beyond all numbers", [Buffer.from([0x81, 0xff, ...Array(8).fill(0xff), 0, 0, 0, 0])], 1009],
    ["a reserved bit", [frame(opcodes.text, "x", { reserved: 4 })], 1002],
    ["an unknown opcode", [frame(3, "x")], 1002],
    ["a control frame in pieces", [frame(opcodes.ping, "x", { fin: false })], 1002],
    ["a control frame that is too long", [frame(opcodes.ping, "x".repeat(126))], 1002],
    ["a piece of nothing", [frame(opcodes.more, "x")], 1002],
    [
      "a message within a message",
      [frame(opcodes.text, "x", { fin: false }), frame(opcodes.text, "y")],
      1002,
    ],
    ["a close with half a code", [frame(opcodes.close, Buffer.from([3]))], 1002],
    ["a close with a code that nobody may send", [frame(opcodes.close, Buffer.from([3, 237]))], 1002],
  ])("that sends %s is closed with its code [RW-WS-4]", async (_, frames, code) => {
    for (const path of await paths()) {
      const raw = await upgraded(path);
      raw.write(Buffer.concat(frames));
      expect([path, await closeCode(raw)]).toEqual([path, code]);
      raw.socket.destroy();
    }
  });

  it("that sends a message in pieces without end is closed [RW-WS-4]", async () => {
    for (const path of await paths()) {
      const raw = await upgraded(path);
      raw.write(frame(opcodes.text, "x", { fin: false }));
      const piece = frame(opcodes.more, "x", { fin: false });
      const pieces = Buffer.concat(Array(1000).fill(piece));
      for (let i = 0; i < 70; i++) raw.write(pieces);
      expect([1008, 1009]).toContain(await closeCode(raw));
      raw.socket.destroy();
    }
  });

  it("that pings without end and reads nothing is not answered without end", async () => {
    for (const path of await paths()) {
      const raw = await upgraded(path);
      let heardBytes = 0;
      raw.socket.removeAllListeners("data");
      raw.socket.on("data", (bytes) => {
        heardBytes += bytes.length;
      });
      raw.socket.pause();
      const pings = Buffer.concat(Array(1000).fill(frame(opcodes.ping, "x".repeat(125))));
      const rounds = 400;
      for (let i = 0; i < rounds; i++) await new Promise((resolve) => raw.socket.write(pings, resolve));
      raw.socket.write(frame(opcodes.close, Buffer.from([3, 232])));
      raw.socket.resume();
      await raw.ended;
      // What the two kernels hold for a reader that has stopped, and a little more; all would be 50 MB.
      expect(heardBytes).toBeLessThan((rounds * pings.length) / 2);
    }
  });

  it("that sends nonsense is told so each time, and goes on [RW-WS-3]", async () => {
    const run_id = await createRun(server.url);
    const reading = await openReading("websocket", server.url, "/v1/agent/stream?dialect=runwire");
    const nonsense = [
      "",
      "{",
      "[]",
      "null",
      '"x"',
      "{}",
      '{"type":"subscribe"}',
      '{"type":"subscribe","run_id":1}',
      '{"type":"subscribe","run_id":"feed:default:runs"}',
      '{"type":"subscribe","run_id":"../x"}',
      `{"type":"subscribe","run_id":"${run_id}","after":{"toString":1,"valueOf":2}}`,
      `{"type":"subscribe","run_id":"${run_id}","after":[[]]}`,
      `{"type":"subscribe","run_id":"${run_id}","after":true}`,
      '{"type":"__proto__","run_id":"x"}',
      '{"__proto__":{"type":"subscribe"}}',
      "[".repeat(60_000),
    ];
    for (const message of nonsense) reading.send(message);
    await reading.until(({ heard }) => heard.length === nonsense.length);
    for (const { data } of reading.heard) {
      expect(data).toMatch(/^\{"type":"error","run_id":/);
      expect(data).not.toContain("KAI-SERVER-BUG");
    }
    for (const after of [undefined, null, 0, "0", 1e300, -1, "x"])
      reading.send({ type: "subscribe", run_id: await createRun(server.url), after });
    reading.send({ type: "subscribe", run_id });
    await append(server.url, run_id, text("heard"), lifecycle("done"));
    await reading.until(({ heard }) => heard.some(({ data }) => data.includes('"heard"')));
    reading.stop();
  });

  it("that asks for more runs than it can carry is closed at once, whatever it sends along", async () => {
    const runs = await Promise.all(
      Array.from({ length: limits.runsPerStreamMax + 1 }, () => createRun(server.url)),
    );
    const path = `/v1/agent/stream?runs=${runs.join(",")}`;
    const raw = await rawConnection(server.url);
    const asks = frame(opcodes.text, `{"type":"subscribe","run_id":"${runs[0]}"}`);
    raw.write(Buffer.concat([Buffer.from(handshake(path)), asks, asks]));
    // It does not wait to be told goodbye.
    await raw.ended;
    expect(await closeCode(raw)).toBe(4400);
    expect(raw.text).toContain(`to ${limits.runsPerStreamMax} runs`);
    expect(raw.text).not.toContain("run.lifecycle");
  });

  it("that floods one run's stream with messages changes nothing on it", async () => {
    const run_id = await createRun(server.url);
    const raw = await upgraded(streamPath({ run_id }));
    const messages = Buffer.concat(
      Array(1000).fill(frame(opcodes.text, '{"type":"subscribe","run_id":"x"}')),
    );
    for (let i = 0; i < 50; i++) raw.write(messages);
    await append(server.url, run_id, text("still heard"), lifecycle("done"));
    expect(await closeCode(raw)).toBe(1000);
    expect(raw.text).toContain("still heard");
    raw.socket.destroy();
  });
});
