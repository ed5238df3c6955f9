// What an agent asks a person: the first answer wins, once, and in time.

import type { Event, Facts } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import { allEvents, append, codeOf, control, createRun, getRun, lifecycle, say, tryAppend } from "./calls.js";
import { isSoak } from "./chance.js";
import { openReading, streamPath } from "./readers.js";
import { underTest } from "./under-test.js";

const server = underTest(startGateway);

const stateOf = async (run_id: string): Promise<unknown> => (await getRun(server.url, run_id)).state;

describe("a request for a person", () => {
  it("takes the first answer; the same again is fine, another is not [RW-CONTROL-4]", async () => {
    const run_id = await createRun(server.url);
    await append(
      server.url,
      run_id,
      say("approval.requested", { approval_id: "appr_1", call_id: "call_1" }),
      say("clarify.requested", { clarify_id: "clar_1", question: "which?" }),
    );
    const answer = (body: Facts) => control(server.url, run_id, "approvals/appr_1", body);
    const first = await answer({ decision: "once", input: { path: "/tmp" }, reason: "fine" });
    expect([first.status, first.body]).toEqual([200, { run_id, request_id: "appr_1", status: "resolved" }]);
    expect((await answer({ decision: "once", input: { path: "/tmp" } })).status).toBe(200);
    for (const other of [
      { decision: "deny" },
      { decision: "once" },
      { decision: "once", input: { path: "/" } },
    ]) {
      const refused = await answer(other);
      expect([refused.status, codeOf(refused)]).toEqual([409, "KAI-RUN-REQUEST-0002"]);
      // Which it was, and nothing that somebody wrote.
      expect(refused.text).toContain("`once`, with arguments of its own");
      expect(refused.text).not.toContain("/tmp");
    }
    const clarify = (given: unknown) =>
      control(server.url, run_id, "clarifications/clar_1", { answer: given });
    expect((await clarify({ which: ["the red one"] })).status).toBe(200);
    expect((await clarify({ which: ["the red one"] })).status).toBe(200);
    expect((await clarify("the blue one")).status).toBe(409);
    const answers = (await allEvents(server.url, run_id)).filter((e) => e.type.endsWith(".resolved"));
    expect(answers.map((e) => e.payload)).toEqual([
      {
        approval_id: "appr_1",
        decision: "once",
        outcome: "answered",
        reason: "fine",
        input: { path: "/tmp" },
      },
      { clarify_id: "clar_1", answer: { which: ["the red one"] }, outcome: "answered" },
    ]);
    expect(await stateOf(run_id)).toBe("running");
  });

  it("knows the same answer again, and another, also where it is long [RW-CONTROL-4]", async () => {
    const run_id = await createRun(server.url);
    await append(
      server.url,
      run_id,
      say("approval.requested", { approval_id: "appr_1", call_id: "call_1" }),
      say("clarify.requested", { clarify_id: "clar_1", question: "which?" }),
    );
    const approve = (text: string) =>
      control(server.url, run_id, "approvals/appr_1", { decision: "once", input: { text } });
    const clarify = (answer: unknown) => control(server.url, run_id, "clarifications/clar_1", { answer });
    // The second lies beside the log, where it comes first.
    for (const [answer, chars] of [
      [approve, 10_000],
      [clarify, 100_000],
    ] as const) {
      const long = "x".repeat(chars);
      const statuses = [];
      for (const given of [long, long, `${long}y`]) statuses.push((await answer(given)).status);
      expect(statuses).toEqual([200, 200, 409]);
    }
    expect((await approve("y")).text).toContain("`once`, with arguments of its own");
  });

  it("that nobody made is 404, also one of the other kind or of another run", async () => {
    const run_id = await createRun(server.url);
    const other = await createRun(server.url);
    await append(server.url, run_id, say("approval.requested", { approval_id: "appr_1" }));
    const unknown = [
      await control(server.url, run_id, "approvals/appr_2", { decision: "deny" }),
      await control(server.url, run_id, "approvals/constructor", { decision: "deny" }),
      await control(server.url, run_id, "clarifications/appr_1", { answer: "x" }),
      await control(server.url, other, "approvals/appr_1", { decision: "deny" }),
    ];
    expect(unknown.map((reply) => [reply.status, codeOf(reply)])).toEqual(
      unknown.map(() => [404, "KAI-RUN-REQUEST-0001"]),
    );
  });

  it("that has expired is 410, and the run is told that nobody answered [RW-CONTROL-5]", async () => {
    const run_id = await createRun(server.url);
    const reading = await openReading("sse", server.url, streamPath({ run_id, dialect: "runwire" }));
    const expires_at = new Date(Date.now() + 150).toISOString();
    await append(
      server.url,
      run_id,
      say("approval.requested", { approval_id: "appr_1", expires_at }),
      say("clarify.requested", { clarify_id: "clar_1", question: "which?", expires_at }),
      say("approval.requested", { approval_id: "appr_2", expires_at: "2020-01-01T00:00:00Z" }),
    );
    const late = await control(server.url, run_id, "approvals/appr_2", { decision: "once" });
    expect([late.status, codeOf(late)]).toEqual([410, "KAI-RUN-REQUEST-0003"]);
    await reading.until(({ events }) => events.filter((e) => e.type.endsWith(".resolved")).length === 3);
    const closed = reading.events.filter((e) => e.type.endsWith(".resolved")).map((e) => e.payload);
    expect(closed).toEqual(
      expect.arrayContaining([
        { approval_id: "appr_1", decision: "deny", outcome: "expired", reason: null },
        { approval_id: "appr_2", decision: "deny", outcome: "expired", reason: null },
        { clarify_id: "clar_1", answer: null, outcome: "expired" },
      ]),
    );
    for (const id of ["approvals/appr_1", "approvals/appr_2", "clarifications/clar_1"]) {
      const body = id.startsWith("approvals") ? { decision: "deny" } : { answer: "x" };
      expect([id, (await control(server.url, run_id, id, body)).status]).toEqual([id, 410]);
    }
    reading.stop();
    // So is one whose run has ended meanwhile.
    const ended = await createRun(server.url);
    await append(server.url, ended, say("approval.requested", { approval_id: "appr_1" }), lifecycle("error"));
    expect((await control(server.url, ended, "approvals/appr_1", { decision: "once" })).status).toBe(410);
  });

  it("that has expired is not covered by a word for another one of its tool [RW-LEASE-4] [RW-ALLOW-3]", async () => {
    const run_id = await createRun(server.url);
    const ask = (approval_id: string, more: Facts = {}) =>
      say("approval.requested", { approval_id, tool: "shell", ...more });
    const expires_at = "2020-01-01T00:00:00Z";
    const reading = await openReading("sse", server.url, streamPath({ run_id, dialect: "runwire" }));
    await append(server.url, run_id, ask("appr_1"), ask("appr_2", { expires_at }), ask("appr_3"));
    await control(server.url, run_id, "approvals/appr_1", { decision: "session" });
    const resolved = (): readonly Event[] => reading.events.filter((e) => e.type === "approval.resolved");
    await reading.until(() => resolved().length === 3);
    reading.stop();
    const outcomes = resolved().map(({ payload }) => payload as Facts);
    expect(Object.fromEntries(outcomes.map(({ approval_id, outcome }) => [approval_id, outcome]))).toEqual({
      appr_1: "answered",
      appr_2: "expired",
      appr_3: "covered",
    });
  });

  it("is asked once under an id, so that an old answer never answers a new one [RW-CONTROL-6]", async () => {
    const run_id = await createRun(server.url);
    const ask = () => tryAppend(server.url, run_id, [say("approval.requested", { approval_id: "appr_2" })]);
    expect((await ask()).status).toBe(200);
    const whilePending = await ask();
    expect([whilePending.status, codeOf(whilePending)]).toEqual([409, "KAI-RUN-REQUEST-0004"]);
    expect((await control(server.url, run_id, "approvals/appr_2", { decision: "once" })).status).toBe(200);
    expect((await ask()).status).toBe(409);
    expect((await control(server.url, run_id, "approvals/appr_2", { decision: "once" })).status).toBe(200);
    const types = (await allEvents(server.url, run_id)).map(({ type }) => type);
    expect(types.filter((type) => type.startsWith("approval."))).toEqual([
      "approval.requested",
      "approval.resolved",
    ]);
  });

  it("gets one decision from a hundred people who answer at once [RW-CONTROL-4]", async () => {
    for (let round = 0; round < (isSoak ? 1000 : 5); round++) {
      const run_id = await createRun(server.url);
      await append(server.url, run_id, say("approval.requested", { approval_id: "appr_1" }));
      const decisions = ["once", "session", "always", "deny"];
      const aborting = round % 2 === 1 ? control(server.url, run_id, "abort") : undefined;
      const replies = await Promise.all(
        Array.from({ length: 100 }, async (_, i) => {
          const decision = decisions[(i * 7 + round) % 4] as string;
          return { decision, reply: await control(server.url, run_id, "approvals/appr_1", { decision }) };
        }),
      );
      await aborting;
      const made = (await allEvents(server.url, run_id)).filter((e) => e.type === "approval.resolved");
      expect(made).toHaveLength(1);
      const { decision, outcome } = (made[0] as Event).payload as { decision: string; outcome: string };
      for (const one of replies) {
        const expected = outcome === "closed" ? 410 : one.decision === decision ? 200 : 409;
        expect([one.decision, one.reply.status]).toEqual([one.decision, expected]);
      }
    }
  });
});
