// Dialects that number their messages themselves, where an event is several messages or none: over every transport,
// from every cut, in pages and replays, and several runs on one connection.

import { type Dialect, dialects, loom } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { beforeAll, describe, expect, it } from "vitest";
import { append, call, codeOf, createRun, lifecycle, runPath, say, text } from "./calls.js";
import { chance, isSoak } from "./chance.js";
import { openReading, readAll, streamPath, wireNames } from "./readers.js";
import { record, storyOfEveryType } from "./story.js";
import { underTest } from "./under-test.js";

const server = underTest(startGateway, {});
const luck = chance("numbered");
const numbered = [...dialects.values()].filter(({ cursor }) => typeof cursor === "object");
const combinations = numbered.flatMap((dialect) =>
  wireNames.flatMap((wire) => (["default", "full"] as const).map((detail) => ({ dialect, wire, detail }))),
);

let run_id: string;

beforeAll(async () => {
  // A run that enters nodes, asks and calls, among events of every kind and of three generations of children.
  run_id = await record(
    server.url,
    [
      say("node.enter", { id: "think" }),
      text("one "),
      say("tool.start", { call_id: "c1", tool: "sort", input: { items: [2, 1] } }),
      say("text.delta", { text: "sorting", call_id: "c1" }),
      say("tool.end", { call_id: "c1", ok: true, output: [1, 2] }),
      say("node.exit", { id: "think", result: "Ok" }),
      ...storyOfEveryType(luck.seed),
    ],
    25,
  );
});

const named = (dialect: Dialect): { readonly dialect: string } => ({ dialect: dialect.name });

describe("a dialect that numbers its messages", () => {
  it.each(combinations.map((one) => ({ ...one, name: one.dialect.name })))(
    "goes on after any of them: $name, $wire, $detail [RW-CURSOR-6]",
    async ({ dialect, wire, detail }) => {
      const path = { run_id, ...named(dialect), detail };
      const whole = await readAll(wire, server.url, streamPath(path));
      expect(whole.ending.clean).toBe(true);
      if (wire === "sse")
        expect(whole.heard.map(({ id }) => id)).toEqual(whole.heard.map((_, i) => `${i + 1}`));
      const data = whole.heard.map((message) => message.data);
      // All of them where there is time; otherwise some, and others each time.
      const stride = isSoak ? 1 : 12;
      for (let after = luck.whole(1, stride); after < data.length; after += stride) {
        const rest = await readAll(wire, server.url, streamPath({ ...path, after }));
        expect([after, rest.heard.map((message) => message.data)]).toEqual([after, data.slice(after)]);
      }
      const none = await openReading(
        wire === "websocket" ? "sse" : wire,
        server.url,
        streamPath({ ...path, after: data.length }),
      );
      expect(none.status).toBe(204);
      const ahead = await readAll(wire, server.url, streamPath({ ...path, after: data.length + 1 }));
      expect(ahead.heard.map((message) => message.data).slice(-data.length)).toEqual(data);
    },
  );

  it.each(numbered)(
    "says the same in pages, in a replay and among other runs: $name [RW-CURSOR-6]",
    async (dialect) => {
      const whole = await readAll("ndjson", server.url, streamPath({ run_id, ...named(dialect) }));
      const data = whole.heard.map((message) => message.data);
      const replay = await fetch(`${server.url}${runPath(run_id, "replay.jsonl")}?dialect=${dialect.name}`);
      expect((await replay.text()).trimEnd().split("\n")).toEqual(data);
      const paged: string[] = [];
      for (let after: unknown = 0; after !== null; ) {
        const page = await call(
          server.url,
          "GET",
          `${runPath(run_id, "events")}?dialect=${dialect.name}&limit=7&after=${after}`,
        );
        const events = page.body.events as readonly object[];
        expect(events.length).toBeLessThanOrEqual(7);
        paged.push(...events.map((event) => JSON.stringify(event)));
        after = page.body.next;
      }
      expect(paged.map((event) => JSON.parse(event))).toEqual(data.map((one) => JSON.parse(one)));
      const half = Math.floor(data.length / 2);
      const many = `/v1/agent/stream?dialect=${dialect.name}&runs=${run_id}:${half}`;
      const rest = await readAll("ndjson", server.url, many);
      expect(rest.heard.map((message) => message.data)).toEqual(data.slice(half));
    },
  );

  it.each(numbered)(
    "goes on while the run does, also from the middle of an event: $name [RW-CURSOR-6]",
    async (dialect) => {
      const live = await createRun(server.url);
      const reading = await openReading("sse", server.url, streamPath({ run_id: live, ...named(dialect) }));
      await append(server.url, live, say("tool.start", { call_id: "c", tool: "t", input: {} }));
      await append(server.url, live, say("node.enter", { id: "act" }), text("half"));
      const late = openReading("sse", server.url, streamPath({ run_id: live, ...named(dialect), after: 2 }));
      await append(
        server.url,
        live,
        text(" and half"),
        say("tool.end", { call_id: "c", ok: true, output: "" }),
      );
      await append(server.url, live, lifecycle("done"));
      const whole = await reading.ended.then(() => reading.heard.map(({ data }) => data));
      const rest = await (await late).ended.then(async () => (await late).heard.map(({ data }) => data));
      expect(rest).toEqual(whole.slice(2));
    },
  );

  it.each(numbered)("skips nothing: $name", async (dialect) => {
    const refused = await call(
      server.url,
      "GET",
      streamPath({ run_id, ...named(dialect), backpressure: "drop" }),
    );
    expect([refused.status, codeOf(refused)]).toEqual([400, "KAI-STREAM-PARAM-0001"]);
  });
});

describe("Loom", () => {
  it("is taken from a producer, and readers of other dialects see the run [RW-LOOM-4]", async () => {
    const live = await createRun(server.url);
    const lines = [
      { type: "node_enter", id: "think" },
      { type: "thought_chunk", content: "Hm.", id: "think" },
      { type: "message_chunk", content: "Hello", id: "think" },
      { type: "tool_call", call_id: "c1", name: "clock", arguments: { zone: "UTC" } },
      { type: "node_exit", id: "think", result: "Ok" },
      { type: "tool_start", call_id: "c1", name: "clock" },
      { type: "tool_output", call_id: "c1", name: "clock", content: "tick" },
      { type: "tool_end", call_id: "c1", name: "clock", result: "12:00", is_error: false },
      { reply: "Hello, it is noon." },
    ];
    const taken = await call(server.url, "POST", `${runPath(live, "events")}?dialect=loom`, lines);
    expect(taken.status).toBe(200);
    const { events } = await readAll("ndjson", server.url, streamPath({ run_id: live }));
    expect(events.map(({ type }) => type)).toEqual([
      "run.lifecycle",
      "reasoning.delta",
      "text.delta",
      "tool.start",
      "text.delta",
      "tool.end",
      "run.lifecycle",
    ]);
    const said = await readAll("ndjson", server.url, streamPath({ run_id: live, ...named(loom as Dialect) }));
    expect(said.heard.slice(1).map(({ data }) => JSON.parse(data))).toEqual(
      lines.map((line) => expect.objectContaining(line)),
    );
    const snapshot = await call(server.url, "GET", runPath(live, "snapshot"));
    expect(snapshot.body).toMatchObject({ transcript: { state: "done" } });
  });

  it("without ids of its calls is understood over several requests [RW-LOOM-4]", async () => {
    const live = await createRun(server.url);
    const post = async (...lines: readonly object[]): Promise<number> =>
      (await call(server.url, "POST", `${runPath(live, "events")}?dialect=loom`, lines)).status;
    const callOf = (name: string, result: string, is_error: boolean): readonly object[] => [
      { type: "tool_call", name, arguments: {} },
      { type: "tool_start", name },
      { type: "tool_end", name, result, is_error },
    ];
    const ask = { type: "tool_approval", name: "rm", arguments: {} };
    expect(await post(...callOf("sh", "no", true))).toBe(200);
    for (const line of callOf("py", "yes", false)) expect(await post(line)).toBe(200);
    expect([await post(ask), await post(ask)]).toEqual([200, 200]);
    const { body } = await call(server.url, "GET", runPath(live, "snapshot"));
    const { tools, approvals } = body.transcript as { tools: object; approvals: object };
    expect(Object.values(tools)).toMatchObject([
      { tool: "sh", status: "failed", error: { message: "no" } },
      { tool: "py", status: "ok", output: "yes" },
    ]);
    expect(Object.keys(approvals)).toHaveLength(2);
  });

  it("keeps the ids of nodes that come again in a later request [RW-LOOM-2]", async () => {
    const live = await createRun(server.url);
    const node = { id: "think", node_id: "run-think-0" };
    const lines = [
      { type: "node_enter", ...node },
      { type: "node_exit", ...node, result: "Ok" },
    ];
    for (const _ of [1, 2]) await call(server.url, "POST", `${runPath(live, "events")}?dialect=loom`, lines);
    await append(server.url, live, lifecycle("done"));
    const { heard } = await readAll(
      "ndjson",
      server.url,
      streamPath({ run_id: live, ...named(loom as Dialect) }),
    );
    const said = heard.slice(1, -1).map(({ data }) => JSON.parse(data));
    expect(said).toEqual([...lines, ...lines].map((line) => expect.objectContaining(line)));
  });

  it.each([
    ["l-1", "r-1"],
    ["Left team #1", "Right team #1"],
  ])(
    "says what nodes side by side said in turns under the node that said it, in both views: %s, %s [RW-SHAPE-7]",
    async (left, right) => {
      const live = await createRun(server.url);
      const chunk = (content: string, id: string, node_id: string) => ({
        type: "message_chunk",
        content,
        id,
        node_id,
      });
      // Their names are no help.
      const turns = [chunk("a1", "team", left), chunk("b1", "team", right), chunk("a2", "team", left)];
      const lines = [
        { type: "node_enter", id: "team", node_id: left },
        { type: "node_enter", id: "team", node_id: right },
        ...turns,
        ...turns,
        { type: "node_exit", id: "team", node_id: right, result: "Ok" },
        { type: "node_exit", id: "team", node_id: left, result: "Ok" },
        { reply: "both" },
      ];
      const taken = await call(server.url, "POST", `${runPath(live, "events")}?dialect=loom`, lines);
      expect(taken.status).toBe(200);
      const replay = async (detail: string): Promise<readonly unknown[]> => {
        const path = `${runPath(live, "replay.jsonl")}?dialect=loom&detail=${detail}`;
        const text = await (await fetch(`${server.url}${path}`)).text();
        return text
          .trimEnd()
          .split("\n")
          .slice(1)
          .map((line) => JSON.parse(line));
      };
      const told = (list: readonly object[]) => list.map((line) => expect.objectContaining(line));
      expect(await replay("full")).toEqual(told(lines));
      const { events } = await readAll("ndjson", server.url, streamPath({ run_id: live }));
      expect(events.filter(({ type }) => type === "text.delta")).toHaveLength(1);
      const joined = [turns[0], turns[1], chunk("a2a1", "team", left), turns[1], turns[2]] as object[];
      expect(await replay("default")).toEqual(told([...lines.slice(0, 2), ...joined, ...lines.slice(-3)]));
    },
  );

  it("that is malformed is refused with its line, and nothing of it is stored [RW-LOOM-4]", async () => {
    const live = await createRun(server.url);
    const path = `${runPath(live, "events")}?dialect=loom`;
    for (const bad of [
      { type: "node_enter" },
      { reply: 7 },
      { type: "tool_end", name: "x" },
      { type: "a b" },
      [],
    ]) {
      const refused = await call(server.url, "POST", path, [{ type: "custom", value: 1 }, bad]);
      expect([bad, refused.status]).toEqual([bad, 422]);
      expect(String((refused.body.error as { message: string }).message)).toContain("event 2");
    }
    expect(
      (await call(server.url, "GET", `${runPath(live, "events")}?dialect=runwire`)).body.events,
    ).toHaveLength(2);
  });
});
