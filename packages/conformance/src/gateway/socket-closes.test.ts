// How WebSockets end: with a code of the error table, at once where they cannot be opened. Every row that has such a code
// is met here. Who may not know more gets a status and no WebSocket.

import { once } from "node:events";
import { type ErrorCode, type ErrorRow, errorTable, RunwireError } from "@runwire/protocol";
import { createKey, revokeKey, type Store, sqliteStore, startGateway } from "@runwire/server";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { type Key, newKey, newRun, revoke, write } from "./access.js";
import { ask, type Question } from "./asking.js";
import { runPath, say, text } from "./calls.js";
import { rawConnection, requestText, upgradeLines } from "./raw-http.js";
import { underTest } from "./under-test.js";

/** What asking the store comes to; the store's own answer unless a test says otherwise. */
let asked = (): void => {};

function faulty(store: Store): Store {
  return {
    ...store,
    head: async (...of) => {
      asked();
      return store.head(...of);
    },
    read: async (...of) => {
      asked();
      return store.read(...of);
    },
  };
}

const connectionsMax = 8;
const server = underTest(
  (settings: object, clock) =>
    startGateway(settings, clock, undefined, (options) => faulty(sqliteStore(options))),
  { auth: "keys", connectionsPerTenantMax: connectionsMax, log: "off" },
);
/** One request is all that there is, because no second passes. */
const still = underTest(
  startGateway,
  { requestsPerSecond: 1, log: "off" },
  {
    now: Date.now,
    monotonic: () => 0,
  },
);
let alice: Key;
let run_id: string;

beforeAll(async () => {
  alice = await newKey(createKey, server, "alice");
});
beforeEach(async () => {
  asked = () => {};
  run_id = await newRun(server.url, alice.headers);
});

/** One run, several, and Loom's own: all that a WebSocket is good for here. */
const paths = (): readonly string[] => [
  runPath(run_id, "stream"),
  `/v1/agent/stream?runs=${run_id}`,
  "/v1/loom",
];
const runs = (): readonly string[] => paths().slice(0, 2);

async function opened(path: string, { headers }: Key = alice): Promise<WebSocket> {
  const ws = new WebSocket(server.url.replace("http", "ws") + path, { headers });
  await once(ws, "open");
  return ws;
}

async function closeOf(ws: WebSocket): Promise<number> {
  const [code] = (await once(ws, "close")) as [number];
  return code;
}

/** The closes of all these, opened first and then brought to their ends. */
async function closes(
  of: readonly string[],
  end: (sockets: readonly WebSocket[]) => unknown,
  key?: Key,
): Promise<readonly number[]> {
  const sockets = await Promise.all(of.map((path) => opened(path, key)));
  const codes = Promise.all(sockets.map(closeOf));
  await end(sockets);
  return codes;
}

/** Every socket sends this. */
const sent = (data: string | Buffer, binary: boolean) => () =>
  closes(paths(), (sockets) => sockets.map((ws) => ws.send(data, { binary })));

/** The store answers with this from the next look on. */
const failing = (error: Error) => () =>
  closes(runs(), async () => {
    const appended = write(server.url, alice.headers, run_id, text("more"));
    asked = () => {
      throw error;
    };
    // Stored or refused: its readers hear that the log moves, or not, and in either case must not hang.
    await appended.catch(() => {});
  });

/** The closes of all these, which are opened for that alone. */
async function turnedAway(...questions: readonly Question[]): Promise<readonly number[]> {
  const asking = questions.map((question) =>
    ask(server.url, { headers: alice.headers, ...question, upgrade: true }),
  );
  return (await Promise.all(asking)).map(({ close }) => close ?? 0);
}

/** The store answers with this already when they are asked for. */
const unreadable = (error: Error) => () => {
  asked = () => {
    throw error;
  };
  return turnedAway(...runs().map((path) => ({ path })));
};

async function erased(): Promise<readonly number[]> {
  await ask(server.url, { method: "DELETE", path: `/v1/agent/runs/${run_id}`, headers: alice.headers });
  return turnedAway(...runs().map((path) => ({ path })));
}

async function tooMany(): Promise<readonly number[]> {
  const bob = await newKey(createKey, server, "bob");
  const open = await Promise.all(Array.from({ length: connectionsMax }, () => opened("/v1/loom", bob)));
  const codes = await turnedAway(...paths().map((path) => ({ path, headers: bob.headers })));
  for (const ws of open) ws.terminate();
  return codes;
}

async function tooOften(): Promise<readonly number[]> {
  const questions = paths().map((path) => ({ path, upgrade: true }));
  await ask(still.url, { path: "/v1/agent/runs" });
  return (await Promise.all(questions.map((question) => ask(still.url, question)))).map(
    ({ close }) => close ?? 0,
  );
}

async function revoked(): Promise<readonly number[]> {
  const gone = await newKey(createKey, server, "alice");
  return closes(paths(), () => revoke(revokeKey, server, gone), gone);
}

const met: { readonly [C in ErrorCode]?: () => Promise<readonly number[]> } = {
  "KAI-STREAM-PARAM-0001": () =>
    turnedAway({ path: `${runs()[0]}?detail=some` }, { path: `${runs()[1]}&detail=some` }),
  "KAI-RUN-MISSING-0001": () =>
    turnedAway({ path: runPath("run_0", "stream") }, { path: `${runs()[1]},run_0` }),
  "KAI-STREAM-CONN-0002": erased,
  "KAI-LIMIT-CONNECTIONS-0001": tooMany,
  "KAI-LIMIT-RATE-0001": tooOften,
  "KAI-SERVER-STORE-0001": unreadable(new RunwireError("KAI-SERVER-STORE-0001")),
  "KAI-STREAM-FRAME-0001": sent(Buffer.from("{}"), true),
  "KAI-REQUEST-BODY-0001": sent(Buffer.from([0x22, 0xc3, 0x28, 0x22]), false),
  "KAI-REQUEST-SIZE-0001": sent("x".repeat(64 * 1024 + 1), false),
  "KAI-AUTH-TOKEN-0003": revoked,
  "KAI-STREAM-LEAVING-0001": () => closes(paths(), () => server.restart()),
  "KAI-SERVER-BUG-0001": failing(new TypeError("not foreseen")),
  "KAI-SERVER-STORE-0003": failing(new RunwireError("KAI-SERVER-STORE-0003")),
};
const closing = (Object.entries(errorTable) as [ErrorCode, ErrorRow][]).flatMap(([code, { close }]) =>
  close === undefined ? [] : [{ code, close }],
);

describe("a WebSocket", () => {
  it.each(closing)("is closed with $close for $code [RW-WS-6] [RW-ERR-3]", async ({ code, close }) => {
    const codes = await met[code]?.();
    expect(codes?.length).toBeGreaterThan(1);
    expect(new Set(codes)).toEqual(new Set([close]));
  });

  it("ends for no other reason of the table [RW-WS-6]", () => {
    expect(Object.keys(met).sort()).toEqual(closing.map(({ code }) => code).sort());
  });

  it("that could be opened and cannot be read on is closed with 1011, whyever [RW-WS-6]", async () => {
    const codes = await failing(new RunwireError("KAI-SERVER-STORE-0001"))();
    expect(codes).toEqual([1011, 1011]);
  });

  it("whose run is erased before it has read it is sent away to ask again, and that is 4410 [RW-WS-6]", async () => {
    // More than the connection takes before somebody reads.
    const large = say("message.settled", { text: "x".repeat(5_000_000) });
    for (let i = 0; i < 4; i++) await write(server.url, alice.headers, run_id, large);
    const whole = [`${runs()[0]}?dialect=runwire`, `${runs()[1]}&dialect=runwire`];
    const codes = await closes(whole, async (sockets) => {
      for (const ws of sockets) ws.pause();
      const path = `/v1/agent/runs/${run_id}`;
      const { status } = await ask(server.url, { method: "DELETE", path, headers: alice.headers });
      expect(status).toBe(204);
      for (const ws of sockets) ws.resume();
    });
    expect(codes).toEqual([1012, 1012]);
    expect(await turnedAway(...whole.map((path) => ({ path })))).toEqual([4410, 4410]);
  });

  it("is closed, and never left open, whichever look at the store fails [RW-WS-6]", async () => {
    for (const path of runs()) {
      let failures = 0;
      for (let n = 1, failed = true; failed; n++) {
        failed = false;
        let looks = 0;
        asked = () => {
          looks += 1;
          if (looks !== n) return;
          failed = true;
          throw new TypeError("not foreseen");
        };
        const ws = new WebSocket(server.url.replace("http", "ws") + path, { headers: alice.headers });
        const end = await Promise.race([closeOf(ws), once(ws, "message").then(() => "whole")]);
        expect(end).toBe(failed ? 1011 : "whole");
        if (failed) failures += 1;
        ws.terminate();
      }
      expect(failures).toBeGreaterThan(1);
    }
  });
});

describe("a WebSocket that cannot be opened", () => {
  const refusals: readonly {
    readonly status: number;
    readonly close?: number;
    readonly what: string;
    readonly question: () => Promise<Question> | Question;
  }[] = [
    {
      status: 400,
      close: 4400,
      what: "a parameter is wrong",
      question: () => ({ path: `${runs()[0]}?detail=some` }),
    },
    { status: 401, what: "nobody asks", question: () => ({ path: runs()[0] ?? "", headers: {} }) },
    {
      status: 403,
      what: "its key may not read",
      question: async () => {
        const { headers } = await newKey(createKey, server, "alice", { scopes: ["write"] });
        return { path: runs()[0] ?? "", headers };
      },
    },
    {
      status: 404,
      close: 4404,
      what: "there is no such run",
      question: () => ({ path: runPath("run_0", "stream") }),
    },
    { status: 404, what: "nothing is there", question: () => ({ path: "/v1/nowhere" }) },
    {
      status: 410,
      close: 4410,
      what: "its run was erased, also to who has a ticket and nothing else",
      async question() {
        const made = { method: "POST", path: "/v1/stream-tickets", body: { run_id } };
        const { ticket } = (await ask(server.url, { ...made, headers: alice.headers })).body;
        const path = `/v1/agent/runs/${run_id}`;
        await ask(server.url, { method: "DELETE", path, headers: alice.headers });
        return { path: `${runs()[0]}?ticket=${ticket}`, headers: {} };
      },
    },
  ];

  it.each(refusals)(
    "because $what is told what SSE is told, with $status or by $close [RW-WS-6]",
    async ({ status, close, question }) => {
      const given = { headers: alice.headers, ...(await question()) };
      const [told, overHttp] = [
        await ask(server.url, { ...given, upgrade: true }),
        await ask(server.url, given),
      ];
      expect([told.status, told.close]).toEqual([status, close]);
      expect(overHttp.status).toBe(status);
      const { code, message } = overHttp.body.error as { code: string; message: string };
      expect(told.body.error).toMatchObject({ code, message });
    },
  );

  it("is told so in no more than fits into a close, and cut between two characters", async () => {
    const { close, text: reason } = await ask(server.url, {
      path: `${runs()[0]}?dialect=${encodeURIComponent("é".repeat(300))}`,
      headers: alice.headers,
      upgrade: true,
    });
    expect(close).toBe(4400);
    expect(reason).toMatch(/^KAI-STREAM-PARAM-0001: /);
    expect(Buffer.byteLength(reason)).toBeLessThanOrEqual(123);
    expect(reason).not.toContain("\ufffd");
  });

  it("gets its connection back at once, whether or not it says goodbye", async () => {
    const raw = await rawConnection(server.url);
    const lines = [`Authorization: ${alice.headers.Authorization}`, ...upgradeLines];
    raw.write(requestText(server.url, "GET", runPath("run_0", "stream"), lines));
    await raw.ended;
    expect(raw.text).toMatch(/^HTTP\/1\.1 101 /);
    expect(raw.text).toContain("KAI-RUN-MISSING-0001");
  });

  it("tells also who has said its last word, by one of the two", async () => {
    const lines = [`Authorization: ${alice.headers.Authorization}`, ...upgradeLines];
    for (let i = 0; i < 20; i++) {
      const raw = await rawConnection(server.url);
      raw.socket.end(requestText(server.url, "GET", runPath("run_0", "stream"), lines));
      await raw.ended;
      expect(raw.text).toMatch(/^HTTP\/1\.1 (101|404) /);
      expect(raw.text).toContain("KAI-RUN-MISSING-0001");
    }
  });
});
