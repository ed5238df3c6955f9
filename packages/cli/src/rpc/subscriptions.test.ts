import { expect, it } from "vitest";
import { subscriptionsOn } from "./subscriptions.js";

/** From the wire to stdout a message is handed on this often, at most. */
const turnsMax = 100;

it("nothing is said of a subscription after it was removed, also what had come by then [RW-RPC-4]", async () => {
  let send = (_: string): void => {};
  const answer: typeof fetch = async (url, init) => {
    if (!String(url).includes("/stream")) return Response.json({ run_id: "run_1" });
    const body = new ReadableStream<Uint8Array>({
      start(stream) {
        send = (text) => stream.enqueue(new TextEncoder().encode(text));
        init?.signal?.addEventListener("abort", () => stream.error(init.signal?.reason));
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
  const frame = (sequence: number): string => `id: ${sequence}\ndata: {"sequence":${sequence}}\n\n`;
  let heard = 0;
  for (let turns = 0; turns < turnsMax; turns++) {
    const said: string[] = [];
    const subscriptions = subscriptionsOn({ base: "http://127.0.0.1:9", fetch: answer }, async (text) => {
      said.push(text);
    });
    const { subscription } = await subscriptions.add("run_1", {});
    const before = send;
    subscriptions.begin();
    await expect.poll(() => send, { interval: 1 }).not.toBe(before);
    send(frame(1));
    await expect.poll(() => said.length, { interval: 1 }).toBe(1);
    send(frame(2));
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    subscriptions.remove(subscription as string);
    const { length } = said;
    await subscriptions.ended();
    expect(said).toHaveLength(length);
    heard += length - 1;
  }
  // Some were removed too late for that.
  expect(heard).toBeGreaterThan(0);
});
