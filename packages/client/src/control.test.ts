import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { gateway } from "./control.js";
import { follow } from "./follow.js";
import { limits } from "./limits.js";
import { sseSource } from "./sources/sse.js";
import { manualClock } from "./testing/manual-clock.js";

interface Seen {
  readonly line: string;
  readonly body: unknown;
  readonly headers: { readonly [name: string]: unknown };
}

let seen: Seen[] = [];
let answer: { status: number; body: string } = { status: 200, body: "{}" };
const server = createServer(async (request, response) => {
  let body = "";
  for await (const piece of request) body += piece;
  const line = `${request.method} ${request.url}`;
  seen.push({ line, body: body === "" ? undefined : JSON.parse(body), headers: request.headers });
  response.writeHead(answer.status).end(answer.status === 204 ? undefined : answer.body);
});
let base = "";
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  seen = [];
  answer = { status: 200, body: "{}" };
});

type Gateway = ReturnType<typeof gateway>;
const requests: readonly (readonly [string, unknown, (to: Gateway) => Promise<unknown>])[] = [
  ["POST /v1/agent/runs", { prompt: "hi" }, (to) => to.createRun({ prompt: "hi" }, "key")],
  [
    "GET /v1/agent/runs?state=running&limit=5",
    undefined,
    (to) => to.listRuns({ state: "running", limit: 5 }),
  ],
  ["POST /v1/agent/runs/r/fork?dialect=runwire", { at: 4 }, (to) => to.fork("r", { at: 4 }, "key")],
  [
    "POST /v1/agent/runs/r/rewind",
    { checkpoint_id: "c" },
    (to) => to.rewind("r", { checkpoint_id: "c" }, "key"),
  ],
  ["GET /v1/agent/runs/r/evidence", undefined, (to) => to.evidence("r")],
  ["GET /v1/agent/runs/r/review", undefined, (to) => to.review("r")],
  ["GET /v1/agent/runs/r/checkpoints", undefined, (to) => to.checkpoints("r")],
  ["GET /v1/agent/sessions?limit=5", undefined, (to) => to.listSessions({ limit: 5 })],
  ["GET /v1/agent/sessions/s%2F1", undefined, (to) => to.session("s/1")],
  ["GET /v1/agent/inbox?limit=7", undefined, (to) => to.inbox(7)],
  ["GET /v1/agent/runs/r%2F1", undefined, (to) => to.getRun("r/1")],
  ["DELETE /v1/agent/runs/r", undefined, (to) => to.eraseRun("r")],
  ["GET /v1/agent/runs/r/events?dialect=runwire&after=3", undefined, (to) => to.events("r", { after: 3 })],
  ["GET /v1/agent/runs/r/snapshot?dialect=runwire&at=9", undefined, (to) => to.snapshot("r", 9)],
  ["GET /v1/agent/runs/r/steps", undefined, (to) => to.steps("r")],
  ["GET /v1/agent/runs/r/children", undefined, (to) => to.children("r")],
  ["POST /v1/agent/runs/r/pause", {}, (to) => to.pause("r")],
  ["POST /v1/agent/runs/r/resume", {}, (to) => to.resume("r")],
  ["POST /v1/agent/runs/r/redirect", { instruction: "go" }, (to) => to.redirect("r", "go")],
  ["POST /v1/agent/runs/r/steer", { text: "left" }, (to) => to.steer("r", "left")],
  ["POST /v1/agent/runs/r/abort", { reason: "no" }, (to) => to.abort("r", "no")],
  ["POST /v1/agent/runs/r/approve_plan", { plan_id: "p" }, (to) => to.approvePlan("r", { plan_id: "p" })],
  [
    "POST /v1/agent/runs/r/approvals/a",
    { decision: "once" },
    (to) => to.answerApproval("r", "a", { decision: "once" }),
  ],
  [
    "POST /v1/agent/runs/r/clarifications/c",
    { answer: "42" },
    (to) => to.answerClarification("r", "c", "42"),
  ],
  [
    "POST /v1/agent/runs/r/events",
    [{ type: "usage", payload: {} }],
    (to) => to.append("r", [{ type: "usage", payload: {} }]),
  ],
  ["POST /v1/agent/runs/r/heartbeat", {}, (to) => to.heartbeat("r")],
  ["POST /v1/agent/runs/r/children", { prompt: "help" }, (to) => to.spawnChild("r", { prompt: "help" })],
  ["GET /v1/agent/runs/r/producers/p", undefined, (to) => to.producer("r", "p")],
  ["POST /v1/stream-tickets", { run_id: "r" }, (to) => to.streamTicket({ run_id: "r" })],
];

describe("a plain request", () => {
  test.each(requests)("is %s", async (line, body, send) => {
    await send(gateway({ base: `${base}/` }));
    expect(seen).toMatchObject([{ line, body }]);
  });

  test("gives what the server answers, or nothing where it answers nothing", async () => {
    answer = { status: 200, body: '{"run_id":"r"}' };
    expect(await gateway({ base }).getRun("r")).toEqual({ run_id: "r" });
    answer = { status: 204, body: "" };
    expect(await gateway({ base }).eraseRun("r")).toBeUndefined();
  });

  test("carries the caller's headers, asked for anew each time", async () => {
    let count = 0;
    const to = gateway({ base, headers: async () => ({ authorization: `Bearer ${++count}` }) });
    await to.getRun("r");
    await to.createRun({}, "key");
    expect(seen.map(({ headers }) => headers.authorization)).toEqual(["Bearer 1", "Bearer 2"]);
    expect(seen[1]?.headers["idempotency-key"]).toBe("key");
  });

  test("that is refused throws the server's code and words", async () => {
    const error = {
      code: "KAI-RUN-STATE-0001",
      message: "the run's state forbids this: it is paused",
      retry: false,
    };
    answer = { status: 409, body: JSON.stringify({ error }) };
    await expect(gateway({ base }).pause("r")).rejects.toMatchObject({
      code: error.code,
      message: error.message,
    });
  });

  test.each([
    ["a line break", "Bearer a\nb"],
    ["a control character", "Bearer a\u0007b"],
    ["a letter of no header", "Bearer a\u0142b"],
  ])("whose header has %s in it cannot be sent, and nobody is told its value", async (_, authorization) => {
    const request = gateway({ base, headers: { authorization } }).getRun("r");
    const error = await request.then(
      () => expect.fail(),
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ code: "KAI-STREAM-PARAM-0001", row: { retry: false } });
    expect(inspect(error, { depth: 9 })).not.toContain(authorization.slice("Bearer ".length));
    expect((error as Error).message).toContain("`authorization`");
    const following = follow(sseSource({ base, run_id: "r", headers: { authorization } }));
    await expect(following.next()).rejects.toMatchObject({ code: "KAI-STREAM-PARAM-0001" });
    expect(seen).toEqual([]);
  });

  test("takes a token with the line break of its file", async () => {
    await gateway({ base, headers: { authorization: "Bearer a\n" } }).getRun("r");
    expect(seen[0]?.headers.authorization).toBe("Bearer a");
  });

  test("that nobody answers in time is given up", async () => {
    const clock = manualClock();
    const never: typeof fetch = (_url, init) =>
      new Promise((_resolve, reject) => {
        init?.signal?.addEventListener("abort", () => reject(init.signal?.reason));
      });
    const request = gateway({ base, clock, fetch: never }).getRun("r");
    await clock.armed(limits.answerMsMax);
    clock.advance(limits.answerMsMax);
    await expect(request).rejects.toThrow(`no answer within ${limits.answerMsMax} ms`);
  });

  test("so is one whose fetch knows no signal, before its head and in its body", async () => {
    const mute = async () => new Response(new ReadableStream());
    for (const fetch of [() => new Promise<Response>(() => {}), mute]) {
      const clock = manualClock();
      const request = gateway({ base, clock, fetch }).getRun("r");
      await clock.armed(limits.answerMsMax);
      setImmediate(() => clock.advance(limits.answerMsMax));
      await expect(request).rejects.toThrow(`no answer within ${limits.answerMsMax} ms`);
    }
  });

  test("a request whose token never comes is given up, too", async () => {
    const clock = manualClock();
    const request = gateway({ base, clock, headers: () => new Promise(() => {}) }).getRun("r");
    await clock.armed(limits.answerMsMax);
    clock.advance(limits.answerMsMax);
    await expect(request).rejects.toThrow(`no answer within ${limits.answerMsMax} ms`);
  });
});
