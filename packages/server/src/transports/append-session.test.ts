import { Readable } from "node:stream";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { koder, RunwireError } from "@runwire/protocol";
import { expect, it } from "vitest";
import { connections } from "../connections.js";
import { appendSession, untilLeaving } from "./append-session.js";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

it("a session that comes to a server which has begun to leave is refused before it begins", async () => {
  const open = connections({ now: () => 0, monotonic: () => 0 }, () => false);
  open.leave();
  let begun = false;
  const call = {
    begin() {
      begun = true;
    },
  };
  const rooms = { connections: open, settings: {} };
  const session = appendSession(rooms as never, call as never, koder as never, undefined);
  await expect(session).rejects.toMatchObject({ code: "KAI-STREAM-LEAVING-0001" });
  expect(begun).toBe(false);
  open.close();
});

it("a session holds what has come of it no longer than it takes to store it", async () => {
  const chunks = 300;
  const chunkBytes = 1024 * 1024;
  let given = 0;
  const body = Readable.from(
    (function* () {
      for (; given < chunks; given++) yield Buffer.allocUnsafeSlow(chunkBytes);
    })(),
    { highWaterMark: 1 },
  );
  const before = process.memoryUsage().arrayBuffers;
  const res = { writableNeedDrain: false, destroyed: false };
  let read = 0;
  for await (const _ of untilLeaving(body as never, res as never, new AbortController().signal)) {
    read += 1;
    if (read < chunks) continue;
    // The session is still open.
    await expect
      .poll(() => {
        collectGarbage();
        return process.memoryUsage().arrayBuffers - before;
      })
      .toBeLessThan(20 * chunkBytes);
  }
  expect(read).toBe(chunks);
});

it("a session that waits for its producer is told that the server leaves", async () => {
  const ending = new AbortController();
  const body = new Readable({ read() {} });
  const res = { writableNeedDrain: false, destroyed: false };
  const waiting = untilLeaving(body as never, res as never, ending.signal);
  const next = waiting.next();
  ending.abort(new RunwireError("KAI-STREAM-LEAVING-0001"));
  await expect(next).rejects.toMatchObject({ code: "KAI-STREAM-LEAVING-0001" });
  // One that was busy then is told when it comes back.
  const late = untilLeaving(body as never, res as never, ending.signal).next();
  await expect(late).rejects.toMatchObject({ code: "KAI-STREAM-LEAVING-0001" });
  body.destroy();
});
