// A run followed in the server's own process: the same messages as on any wire, from any cut, at the reader's pace, and
// an end that says which it is.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dialects, type Facts, type Message } from "@runwire/protocol";
import { type Gateway, startGateway } from "@runwire/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { append, call, createRun, lifecycle, runPath, say, text } from "./calls.js";
import { chance } from "./chance.js";
import { readAll, streamPath } from "./readers.js";
import { record, storyOfEveryType } from "./story.js";

const folder = mkdtempSync(join(tmpdir(), "runwire-in-process-"));
const luck = chance("in-process");
let gateway: Gateway;

beforeAll(async () => {
  gateway = await startGateway({ port: 0, dataFolder: join(folder, "data"), durability: "os" });
});

afterAll(async () => {
  await gateway.close();
  rmSync(folder, { recursive: true });
});

async function whole(messages: AsyncIterable<Message>): Promise<readonly Message[]> {
  const had: Message[] = [];
  for await (const message of messages) had.push(message);
  return had;
}

describe("a reader in the server's own process", () => {
  let run: string;

  beforeAll(async () => {
    run = await record(gateway.url, storyOfEveryType(luck.seed), 20);
  });

  it.each([...dialects.keys()])(
    "reads the rest of a run, wherever it was cut off: %s [RW-EMBED-1] [RW-CURSOR-1]",
    async (dialect) => {
      for (const detail of ["default", "full"] as const) {
        const wire = await readAll("sse", gateway.url, streamPath({ run_id: run, dialect, detail }));
        const had = await whole(gateway.follow({ run, dialect, detail }));
        expect(had).toEqual(wire.heard);
        const cuts = new Set(Array.from({ length: 8 }, () => luck.whole(1, had.length - 1)));
        for (const cut of cuts) {
          const first: Message[] = [];
          for await (const message of gateway.follow({ run, dialect, detail })) {
            first.push(message);
            if (first.length === cut) break;
          }
          const after = first.at(-1)?.id ?? "";
          const rest = await whole(gateway.follow({ run, dialect, detail, after }));
          expect([...first, ...rest]).toEqual(had);
        }
        expect(await whole(gateway.follow({ run, dialect, detail, after: had.at(-1)?.id ?? "" }))).toEqual(
          [],
        );
      }
    },
  );

  it("begins with a snapshot, and is told of a gap and of a cursor that is none [RW-EMBED-1] [RW-RUNTIME-8]", async () => {
    const types = async (options: object): Promise<readonly unknown[]> =>
      (await whole(gateway.follow({ run, ...options }))).map(({ data }) => JSON.parse(data).type);
    expect(await types({ snapshot: true })).toEqual(["snapshot.updated", "item.completed", "run.status"]);
    expect((await types({ snapshot: true, after: 3 })).slice(0, 2)).toEqual([
      "snapshot.updated",
      "snapshot.repaired",
    ]);
    expect((await types({ after: 99_999 })).slice(0, 2)).toEqual(["snapshot.updated", "run.status"]);
  });

  it("is refused a dialect and a detail that there are not [RW-EMBED-2]", async () => {
    for (const options of [{ dialect: "none" }, { detail: "none" as "full" }]) {
      await expect(whole(gateway.follow({ run, ...options }))).rejects.toMatchObject({
        code: "KAI-STREAM-PARAM-0001",
      });
    }
  });

  it("hears a run as it goes on, written without a socket too, and ends with it [RW-EMBED-2]", async () => {
    const { run_id } = await gateway.createRun({ prompt: "go", producer: "external" });
    const said: string[] = [];
    const reading = (async () => {
      for await (const { data } of gateway.follow({ run: run_id, dialect: "koder" })) said.push(data);
    })();
    await gateway.append(run_id, [text("Hello.")]);
    await gateway.appendIn("runtime", run_id, [{ type: "model.delta", payload: { text: " Bye." } }]);
    await expect.poll(() => said.join()).toContain("Bye");
    expect(await gateway.heartbeat(run_id)).toMatchObject({ state: "running" });
    await gateway.append(run_id, [lifecycle("done")]);
    await reading;
    expect(said.map((data) => JSON.parse(data).type)).toEqual(
      expect.arrayContaining(["run.lifecycle", "text.delta"]),
    );
    expect(JSON.parse(said.at(-1) ?? "").payload.state).toBe("done");
  });

  it("takes its time: a reader that waits holds one write, and misses nothing [RW-EMBED-1]", async () => {
    const slow = await createRun(gateway.url);
    const messages = gateway.follow({ run: slow, dialect: "runwire", detail: "full" });
    const had = [(await messages.next()).value as Message];
    for (let i = 0; i < 40; i++) {
      await append(
        gateway.url,
        slow,
        ...Array.from({ length: 50 }, (_, j) => text(`${i}.${j} `.repeat(200))),
      );
    }
    await append(gateway.url, slow, lifecycle("done"));
    // What is not taken is not sent: the server has counted no more than what one write holds.
    const { text: metrics } = await call(gateway.url, "GET", "/metrics");
    const sent = /runwire_stream_sent_bytes_total\{transport="in-process",dialect="runwire"\} (\d+)/.exec(
      metrics,
    );
    const before = Number(sent?.[1]);
    had.push(...(await whole(messages)));
    const { text: after } = await call(gateway.url, "GET", "/metrics");
    const all = /runwire_stream_sent_bytes_total\{transport="in-process",dialect="runwire"\} (\d+)/.exec(
      after,
    );
    expect(Number(all?.[1]) - before).toBeGreaterThan(1_500_000);
    expect(had).toEqual(
      (await readAll("sse", gateway.url, streamPath({ run_id: slow, dialect: "runwire", detail: "full" })))
        .heard,
    );
  });

  it("that leaves, by break or by signal, leaves nothing behind [RW-EMBED-2]", async () => {
    const live = await createRun(gateway.url);
    const readers = async (): Promise<number> => {
      const { text: metrics } = await call(gateway.url, "GET", "/metrics");
      return Number(
        /runwire_readers\{transport="in-process",dialect="runtime"\} (\d+)/.exec(metrics)?.[1] ?? 0,
      );
    };
    const before = await readers();
    for await (const _ of gateway.follow({ run: live })) break;
    const left = new AbortController();
    const waiting = (async () => {
      for await (const _ of gateway.follow({ run: live, signal: left.signal })) {
        // It has all there is after three.
      }
    })();
    await expect.poll(readers).toBe(before + 1);
    left.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await expect(whole(gateway.follow({ run: live, signal: left.signal }))).rejects.toThrow("enough");
    expect(await readers()).toBe(before);
  });

  it("is refused by code, as on any wire [RW-EMBED-2]", async () => {
    await expect(whole(gateway.follow({ run: "run_none" }))).rejects.toMatchObject({
      code: "KAI-RUN-MISSING-0001",
    });
    await expect(whole(gateway.follow({ run, dialect: "morse" }))).rejects.toMatchObject({
      code: "KAI-STREAM-PARAM-0001",
    });
    await expect(gateway.append(run, [text("late")])).rejects.toMatchObject({ code: "KAI-RUN-ENDED-0001" });
    await expect(gateway.append(run, [say("text.delta", {})])).rejects.toMatchObject({
      code: "KAI-STREAM-PROTO-0001",
    });
    await expect(gateway.append(run, [])).rejects.toMatchObject({ code: "KAI-REQUEST-BODY-0001" });
    const wrong = { prompt: 3 } as unknown as { prompt: string };
    await expect(gateway.createRun(wrong)).rejects.toMatchObject({ code: "KAI-REQUEST-BODY-0002" });
    const keyed = () => gateway.createRun({ producer: "external" }, { idempotencyKey: "once" });
    expect((await keyed()).run_id).toBe((await keyed()).run_id);
  });

  it("claims to be a producer as a request does, or is refused [RW-EMBED-2]", async () => {
    const { run_id } = await gateway.createRun({ producer: "external" });
    const good = { id: "writer", epoch: 0, seq: 1 };
    const log = async () => (await call(gateway.url, "GET", runPath(run_id, "replay.jsonl"))).text;
    const before = await log();
    for (const wrong of [
      ...[0, -1, 1.5, Number.NaN, 1e15].map((seq) => ({ seq })),
      ...[-1, 0.5, Number.NaN].map((epoch) => ({ epoch })),
      ...["", "a b"].map((id) => ({ id })),
    ]) {
      await expect(
        gateway.append(run_id, [text("x")], { claim: { ...good, ...wrong } }),
      ).rejects.toMatchObject({ code: "KAI-STREAM-PARAM-0001" });
    }
    expect(await log()).toBe(before);
    expect(await gateway.append(run_id, [text("x")], { claim: good })).toMatchObject({
      last_producer_seq: 1,
    });
  });

  it("creates no run that could not be read again [RW-EMBED-2]", async () => {
    let metadata: Facts = {};
    for (let depth = 0; depth < 300; depth++) metadata = { metadata };
    const polluted = JSON.parse('{"__proto__": {"x": 1}}') as Facts;
    for (const wrong of [metadata, polluted])
      await expect(gateway.createRun({ producer: "external", metadata: wrong })).rejects.toMatchObject({
        code: "KAI-REQUEST-BODY-0002",
      });
  });

  it("names no feed, and no tenant that there cannot be [RW-EMBED-2]", async () => {
    const feed = "feed:default:runs";
    const list = () => call(gateway.url, "GET", "/v1/agent/runs");
    const before = (await list()).text;
    for (const asked of [
      () => gateway.append(feed, [lifecycle("running")]),
      () => gateway.appendIn("runtime", feed, [{ type: "model.delta", payload: { text: "x" } }]),
      () => gateway.heartbeat(feed),
      () => whole(gateway.follow({ run: feed })),
    ])
      await expect(asked()).rejects.toMatchObject({ code: "KAI-RUN-MISSING-0001" });
    expect((await list()).text).toBe(before);
    for (const tenant of ["../../x", "Acme", "", "a".repeat(64)]) {
      for (const asked of [
        () => gateway.createRun({ producer: "external" }, { tenant }),
        () => gateway.append(run, [text("x")], { tenant }),
        () => gateway.heartbeat(run, { tenant }),
        () => whole(gateway.follow({ run, tenant })),
      ])
        await expect(asked()).rejects.toMatchObject({ code: "KAI-STREAM-PARAM-0001" });
    }
    const { run_id } = await gateway.createRun({ producer: "external" }, { tenant: "acme" });
    expect(await gateway.heartbeat(run_id, { tenant: "acme" })).toMatchObject({ state: "running" });
  });

  it("is told that its run was erased, and that the gateway leaves, each by its code [RW-EMBED-2]", async () => {
    const gone = await createRun(gateway.url);
    const erased = whole(gateway.follow({ run: gone }));
    await call(gateway.url, "DELETE", `/v1/agent/runs/${gone}`);
    // Its end is heard where there was time for it.
    await erased.catch((error: unknown) => expect(error).toMatchObject({ code: "KAI-STREAM-CONN-0002" }));

    const own = await startGateway({ port: 0, dataFolder: join(folder, "own"), durability: "os" });
    const live = await createRun(own.url);
    const messages = own.follow({ run: live });
    expect((await messages.next()).done).toBe(false);
    const left = expect(whole(messages)).rejects.toMatchObject({ code: "KAI-STREAM-LEAVING-0001" });
    await own.close();
    await left;
    await expect(whole(own.follow({ run: live }))).rejects.toMatchObject({ code: "KAI-STREAM-LEAVING-0001" });
    await expect(own.append(live, [text("late")])).rejects.toMatchObject({ code: "KAI-STREAM-LEAVING-0001" });
  });
});

describe("a start that fails", () => {
  it("leaves the folder to the next", async () => {
    const settings = { dataFolder: join(folder, "failed"), port: 0, durability: "os", log: "error" } as const;
    const noAgent = () => {
      throw new Error("no room for workspaces");
    };
    await expect(startGateway(settings, undefined, noAgent)).rejects.toThrow("no room for workspaces");
    await (await startGateway(settings)).close();
  });
});
