// How WebSockets end: refused before the upgrade, with the status and body that SSE has, or closed later with a code of
// the error table. Every row that has such a code is met here.

import { once } from "node:events";
import { type ErrorCode, type ErrorRow, errorTable, RunwireError } from "@runwire/protocol";
import { createKey, revokeKey, type Store, sqliteStore, startGateway } from "@runwire/server";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { ask, type Key, newKey, newRun, type Question, revoke, write } from "./access.js";
import { runPath, say, text } from "./calls.js";
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

async function revoked(): Promise<readonly number[]> {
  const gone = await newKey(createKey, server, "alice");
  return closes(paths(), () => revoke(revokeKey, server, gone), gone);
}

const met: { readonly [C in ErrorCode]?: () => Promise<readonly number[]> } = {
  "KAI-STREAM-FRAME-0001": sent(Buffer.from("{}"), true),
  "KAI-REQUEST-BODY-0001": sent(Buffer.from([0x22, 0xc3, 0x28, 0x22]), false),
  "KAI-REQUEST-SIZE-0001": sent("x".repeat(64 * 1024 + 1), false),
  "KAI-AUTH-TOKEN-0003": revoked,
  "KAI-STREAM-LEAVING-0001": () => closes(paths(), () => server.restart()),
  "KAI-SERVER-BUG-0001": failing(new TypeError("not foreseen")),
  "KAI-SERVER-STORE-0001": failing(new RunwireError("KAI-SERVER-STORE-0001")),
  "KAI-SERVER-STORE-0003": failing(new RunwireError("KAI-SERVER-STORE-0003")),
};
const closing = (Object.entries(errorTable) as [ErrorCode, ErrorRow][]).flatMap(([code, { close }]) =>
  close === undefined ? [] : [{ code, close }],
);

describe("an open WebSocket", () => {
  it.each(closing)("is closed with $close for $code [RW-WS-6] [RW-ERR-3]", async ({ code, close }) => {
    const codes = await met[code]?.();
    expect(codes?.length).toBeGreaterThan(1);
    expect(new Set(codes)).toEqual(new Set([close]));
  });

  it("ends for no other reason of the table [RW-WS-6]", () => {
    expect(Object.keys(met).sort()).toEqual(closing.map(({ code }) => code).sort());
  });

  it("whose run is erased before it has read it is sent away to ask again, and that is 410 [RW-WS-6]", async () => {
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
    for (const path of whole)
      expect((await ask(server.url, { path, headers: alice.headers, upgrade: true })).status).toBe(410);
  });

  it("is refused or closed, and never left open, whichever look at the store fails [RW-WS-6]", async () => {
    for (const path of runs()) {
      const seen: unknown[] = [];
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
        const end = await Promise.race([
          closeOf(ws),
          once(ws, "unexpected-response").then(([, { statusCode }]) => Number(statusCode)),
          once(ws, "message").then(() => "whole"),
        ]);
        expect(failed ? [500, 1011] : ["whole"]).toContain(end);
        seen.push(end);
        ws.on("error", () => {}).terminate();
      }
      expect(new Set(seen)).toEqual(new Set([500, 1011, "whole"]));
    }
  });
});

describe("a WebSocket that cannot be opened", () => {
  const refusals: readonly {
    readonly status: number;
    readonly what: string;
    readonly question: () => Promise<Question> | Question;
  }[] = [
    { status: 400, what: "a parameter is wrong", question: () => ({ path: `${runs()[0]}?detail=some` }) },
    { status: 401, what: "nobody asks", question: () => ({ path: runs()[0] ?? "", headers: {} }) },
    {
      status: 403,
      what: "its key may not read",
      question: async () => {
        const { headers } = await newKey(createKey, server, "alice", { scopes: ["write"] });
        return { path: runs()[0] ?? "", headers };
      },
    },
    { status: 404, what: "there is no such run", question: () => ({ path: runPath("run_0", "stream") }) },
    {
      status: 410,
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
    "because $what is refused with $status, as SSE is, which a browser can ask",
    async ({ status, question }) => {
      const given = { headers: alice.headers, ...(await question()) };
      const [told, overHttp] = [
        await ask(server.url, { ...given, upgrade: true }),
        await ask(server.url, given),
      ];
      expect([told.status, overHttp.status]).toEqual([status, status]);
      expect(told.code).toMatch(/^KAI-/);
      expect(told.body).toEqual(overHttp.body);
    },
  );

  it("because its tenant has too many is refused with 429, as SSE is", async () => {
    const bob = await newKey(createKey, server, "bob");
    const path = "/v1/agent/stream";
    const open = await Promise.all(Array.from({ length: connectionsMax }, () => opened(path, bob)));
    for (const upgrade of [true, false]) {
      const { status, code } = await ask(server.url, { path, headers: bob.headers, upgrade });
      expect([status, code]).toEqual([429, "KAI-LIMIT-CONNECTIONS-0001"]);
    }
    for (const ws of open) ws.terminate();
  });
});
