// What the agent asks people, and what becomes of it: answers in any order, none at all, twice, too late, elsewhere.

import { clarifyTool, engine, type Tool } from "@runwire/engine";
import { type Facts, is } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import { allEvents, call, codeOf, control, getRun, type Reply } from "./calls.js";
import { chance, isSoak } from "./chance.js";
import {
  calling,
  ended,
  lastState,
  ofType,
  script,
  scriptedModel,
  seenBy,
  start,
  waitFor,
} from "./scripted.js";
import { forwardClock, underTest } from "./under-test.js";

const luck = chance("agent requests");
const rounds = isSoak ? 1000 : 36;
const clock = forwardClock();

/** What has been done that cannot be taken back. */
const done: unknown[] = [];
const danger: Tool = {
  name: "danger",
  description: "does what cannot be taken back",
  effect: "destructive",
  input_schema: { type: "object" },
  async run(input) {
    done.push((input as Facts).n);
    return { n: (input as Facts).n };
  },
};
const agent = engine({ modelOf: () => scriptedModel, tools: [danger, clarifyTool], planningGate: "off" });
const server = underTest((settings: object) => startGateway(settings, clock, agent), {}, clock);

const asking = { approvals: "destructive" };
const question = { tool: "clarify", input: { question: "Which?", choices: ["a", "b"] } };
const approvalMs = 300_000;
const questionMs = 120_000;

const answer = (run_id: string, asked: Facts | undefined, body: Facts): Promise<Reply> =>
  control(
    server.url,
    run_id,
    asked?.clarify_id === undefined
      ? `approvals/${asked?.approval_id}`
      : `clarifications/${asked.clarify_id}`,
    body,
  );
const outcomes = async (...replies: readonly Promise<Reply>[]): Promise<readonly unknown[]> =>
  (await Promise.all(replies)).map((reply) => [reply.status, codeOf(reply)]);
const gone = [410, "KAI-RUN-REQUEST-0003"];
const stateOf = async (run_id: string): Promise<unknown> => (await getRun(server.url, run_id)).state;
const inInbox = async (): Promise<unknown> => (await call(server.url, "GET", "/v1/agent/inbox")).body.total;

/** One run that waits for an approval, with the request. */
async function waiting(n: unknown): Promise<{ run_id: string; request: Facts | undefined }> {
  const run_id = await start(server.url, calling("danger", { n }), asking);
  const [request] = await waitFor(server.url, run_id, "approval.requested");
  return { run_id, request };
}

const permutations = (items: readonly number[]): readonly (readonly number[])[] =>
  items.length < 2
    ? [items]
    : items.flatMap((item) =>
        permutations(items.filter((other) => other !== item)).map((rest) => [item, ...rest]),
      );

describe("what the agent asks", () => {
  it("is answered in any order, also around a restart, and each call gets its own answer", async () => {
    for (const order of permutations([0, 1, 2])) {
      done.length = 0;
      const prompt = script({
        calls: [{ tool: "danger", input: { n: 0 } }, question, { tool: "danger", input: { n: 2 } }],
      });
      const run_id = await start(server.url, prompt, asking);
      const approvals = await waitFor(server.url, run_id, "approval.requested", 2);
      const questions = await waitFor(server.url, run_id, "clarify.requested");
      const answers: readonly (() => Promise<Reply>)[] = [
        () => answer(run_id, byN(approvals, 0), { decision: "once", input: { n: "edited" } }),
        () => answer(run_id, questions[0], { answer: "b" }),
        () => answer(run_id, byN(approvals, 2), { decision: "deny", reason: "not that" }),
      ];
      const restartAfter = luck.whole(0, 3);
      for (const [i, which] of order.entries()) {
        if (i === restartAfter) {
          // What was approved is done first: a tool that a restart cuts off is another matter.
          if (order.indexOf(0) < i) await waitFor(server.url, run_id, "tool.start", 2);
          if (order.indexOf(0) < i) await waitFor(server.url, run_id, "tool.end");
          await server.restart();
        }
        expect([order, which, (await answers[which]?.())?.status]).toEqual([order, which, 200]);
      }
      const events = await ended(server.url, run_id);
      expect(seenBy(events).results).toMatchObject([
        { ok: true, output: { n: "edited" } },
        { ok: true, output: { answer: "b" } },
        { ok: false, output: { kind: "denied", message: expect.stringContaining("not that") } },
      ]);
      expect(done).toEqual(["edited"]);
      expect(ofType(events, "approval.requested")).toHaveLength(2);
      expect(ofType(events, "clarify.requested")).toHaveLength(1);
    }
  });

  it("takes the first answer; the same again is fine, another is refused, and nothing is done twice", async () => {
    done.length = 0;
    const { run_id, request } = await waiting(1);
    const yes = (): Promise<Reply> => answer(run_id, request, { decision: "once" });
    expect((await yes()).status).toBe(200);
    expect(await outcomes(yes(), answer(run_id, request, { decision: "deny" }), yes())).toEqual([
      [200, undefined],
      [409, "KAI-RUN-REQUEST-0002"],
      [200, undefined],
    ]);
    await ended(server.url, run_id);
    expect(done).toEqual([1]);
    // Also when it has long ended.
    expect(await outcomes(yes())).toEqual([[200, undefined]]);
  });

  it("takes one of a hundred answers and aborts that come at once, and does it once at most [RW-CONTROL-4]", async () => {
    const answers = ["once", "deny", "session"] as const;
    const outcomesSeen = new Set<unknown>();
    for (let round = 0; round < rounds; round++) {
      done.length = 0;
      const { run_id, request } = await waiting(round);
      // At first, in the midst of the answers, or not at all: then what was approved is done.
      const abortsFrom = [0, luck.whole(1, 99), 100][round % 3] as number;
      const wishOf = (i: number): string => {
        if (i < abortsFrom) return luck.pick(answers);
        return i === abortsFrom ? "abort" : luck.pick([...answers, "abort"]);
      };
      const asked = Array.from({ length: 100 }, (_, i) => wishOf(i));
      const replies = await Promise.all(
        asked.map((wish) =>
          wish === "abort" ? control(server.url, run_id, wish) : answer(run_id, request, { decision: wish }),
        ),
      );
      const events = await ended(server.url, run_id);
      const resolved = ofType(events, "approval.resolved");
      expect(resolved).toHaveLength(1);
      const [{ decision, outcome }] = resolved as [Facts];
      outcomesSeen.add(outcome);
      for (const [i, wish] of asked.entries()) {
        const expected = wish === "abort" ? 202 : outcome === "closed" ? 410 : wish === decision ? 200 : 409;
        expect([round, i, wish, replies[i]?.status]).toEqual([round, i, wish, expected]);
      }
      expect([[], [round]]).toContainEqual(done);
      if (decision === "deny") expect(done).toEqual([]);
      else if (abortsFrom === 100) expect(done).toEqual([round]);
    }
    expect([...outcomesSeen].toSorted()).toEqual(["answered", "closed"]);
  });

  it("is answered in its own run only", async () => {
    const one = await waiting(1);
    const two = await waiting(2);
    const missing = [404, "KAI-RUN-REQUEST-0001"];
    expect(
      await outcomes(
        answer(one.run_id, two.request, { decision: "once" }),
        answer(two.run_id, one.request, { decision: "once" }),
        answer("run_nobody", one.request, { decision: "once" }),
      ),
    ).toEqual([missing, missing, [404, "KAI-RUN-MISSING-0001"]]);
    for (const { run_id } of [one, two]) await control(server.url, run_id, "abort");
  });

  it("is gone with its run", async () => {
    done.length = 0;
    const { run_id, request } = await waiting(1);
    await control(server.url, run_id, "abort");
    expect(await outcomes(answer(run_id, request, { decision: "once" }))).toEqual([gone]);
    const events = await ended(server.url, run_id);
    expect(ofType(events, "approval.resolved")).toMatchObject([{ decision: "deny", outcome: "closed" }]);
    expect([done, await inInbox()]).toEqual([[], 0]);
  });
});

describe("what nobody answers", () => {
  it("is a no where it was an approval, and the run goes on without", async () => {
    done.length = 0;
    const { run_id, request } = await waiting(1);
    clock.pass(approvalMs - 1000);
    expect(await stateOf(run_id)).toBe("running");
    clock.pass(1000);
    expect(await outcomes(answer(run_id, request, { decision: "once" }))).toEqual([gone]);
    const events = await ended(server.url, run_id);
    expect(ofType(events, "approval.resolved")).toMatchObject([{ decision: "deny", outcome: "expired" }]);
    const { results } = seenBy(events);
    expect(results).toMatchObject([{ ok: false, output: { kind: "denied" } }]);
    expect(String(results[0]?.output.message)).toContain("not approved in time");
    expect(done).toEqual([]);
    expect(lastState(events)).toMatchObject({ state: "done" });
  });

  it("is left to the agent's judgement where it was a question", async () => {
    const run_id = await start(server.url, script({ calls: [question] }));
    await waitFor(server.url, run_id, "clarify.requested");
    clock.pass(questionMs);
    const { results } = seenBy(await ended(server.url, run_id));
    expect(results).toMatchObject([{ ok: true, output: { answer: null } }]);
    expect(String(results[0]?.output.note)).toContain("best judgement");
  });

  it("is over after a restart too, as long as time has passed meanwhile", async () => {
    done.length = 0;
    const { run_id, request } = await waiting(1);
    const asked = await start(server.url, script({ calls: [question] }));
    const [open] = await waitFor(server.url, asked, "clarify.requested");
    clock.pass(approvalMs);
    await server.restart();
    expect(
      await outcomes(answer(run_id, request, { decision: "once" }), answer(asked, open, { answer: "a" })),
    ).toEqual([gone, gone]);
    for (const one of [run_id, asked])
      expect(lastState(await ended(server.url, one))).toMatchObject({ state: "done" });
    expect(done).toEqual([]);
  });
});

describe("a run that waits", () => {
  it("takes another direction at once, and what it asked is closed", async () => {
    done.length = 0;
    const prompt = script({ calls: [{ tool: "danger", input: { n: 1 } }, question] });
    const run_id = await start(server.url, prompt, asking);
    const [request] = await waitFor(server.url, run_id, "approval.requested");
    const [open] = await waitFor(server.url, run_id, "clarify.requested");
    await control(server.url, run_id, "redirect", { instruction: script({ text: "turned" }) });
    const events = await ended(server.url, run_id);
    expect(lastState(events)).toMatchObject({ state: "done" });
    expect(ofType(events, "approval.resolved")).toMatchObject([{ decision: "deny", outcome: "closed" }]);
    expect(ofType(events, "clarify.resolved")).toMatchObject([{ answer: null, outcome: "closed" }]);
    expect(
      await outcomes(answer(run_id, request, { decision: "once" }), answer(run_id, open, { answer: "a" })),
    ).toEqual([gone, gone]);
    expect([done, await inInbox()]).toEqual([[], 0]);
  });

  it("can be answered while it is paused, and acts on it when it is resumed", async () => {
    done.length = 0;
    const { run_id, request } = await waiting(1);
    await control(server.url, run_id, "pause");
    expect((await answer(run_id, request, { decision: "once" })).status).toBe(200);
    await server.restart();
    expect([await stateOf(run_id), done]).toEqual(["paused", []]);
    await control(server.url, run_id, "resume");
    const events = await ended(server.url, run_id);
    const paused = events.findIndex((e) => is(e, "run.lifecycle") && e.payload.state === "paused");
    const told = ["run.lifecycle", "approval.resolved", "tool.start"];
    const types = events.slice(paused).flatMap(({ type }) => (told.includes(type) ? [type] : []));
    expect(types).toEqual([
      "run.lifecycle",
      "approval.resolved",
      "run.lifecycle",
      "tool.start",
      "run.lifecycle",
    ]);
    expect(done).toEqual([1]);
  });

  it("and is paused and resumed before it is answered still waits", async () => {
    done.length = 0;
    const { run_id, request } = await waiting(1);
    await control(server.url, run_id, "pause");
    await control(server.url, run_id, "resume");
    expect(ofType(await allEvents(server.url, run_id), "approval.requested")).toHaveLength(1);
    await answer(run_id, request, { decision: "once" });
    const events = await ended(server.url, run_id);
    expect([ofType(events, "approval.requested").length, done]).toEqual([1, [1]]);
  });
});

function byN(requests: readonly Facts[], n: number): Facts | undefined {
  return requests.find(({ input }) => (input as Facts).n === n);
}
