// The built-in agent across runs: what it takes up from a fork, and from the turns before.

import { fileURLToPath } from "node:url";
import { type Event, type Facts, is, limits } from "@runwire/protocol";
import { describe, expect, it } from "vitest";
import { allEvents, append, call, control, createRun, lifecycle, say, startRun, text } from "./calls.js";
import { readAll, streamPath } from "./readers.js";
import { ownProcess } from "./server-process.js";

const cli = fileURLToPath(new URL("../../../cli/bin/runwire.js", import.meta.url));
const server = ownProcess([process.execPath, cli, "serve"]);

const start = (asked: Facts): Promise<string> => startRun(server.url, asked);

/** Its own events, once it has ended. */
async function ended(run_id: string): Promise<readonly Event[]> {
  await readAll("sse", server.url, streamPath({ run_id }));
  const events = await allEvents(server.url, run_id, { detail: "default" });
  return events.filter(({ child_id }) => child_id === null);
}

const answerIn = (events: readonly Event[]): string | undefined =>
  events.flatMap((e) => (is(e, "message.settled") ? [e.payload.text] : [])).at(-1);

describe("a fork of the agent's run", () => {
  it("is the agent's too, and goes on from what its tools had found [RW-FORK-1] [RW-FORK-2]", async () => {
    const old = await ended(await start({ prompt: "compare three charting libraries" }));
    const done = old.find((e) => is(e, "step.boundary") && e.payload.step_kind === "fan-in") as Event;
    const { body } = await control(server.url, done.run_id, "fork?dialect=runwire", { at: done.pos });
    const events = await ended(body.run_id as string);
    const types = events.map(({ type }) => type);
    // Its helpers' reports are in the conversation, so it asks for none again.
    expect(types).not.toContain("child.spawn");
    expect(types).not.toContain("tool.start");
    expect(answerIn(events)).toBe(answerIn(old));
    expect(events.at(-1)?.payload).toMatchObject({ state: "done" });
  });
});

/** What a run was asked, as it was stored. */
async function askedIn(run_id: string): Promise<{ messages: readonly Facts[]; history?: Facts }> {
  const events = await allEvents(server.url, run_id);
  return events.find(({ type }) => type === "turn.submitted")?.payload as never;
}

const titlesIn = (events: readonly Event[]): readonly string[] =>
  events.flatMap((e) => (is(e, "title") ? [e.payload.title] : []));

describe("a turn", () => {
  it("is told what was said in the turns before it, and keeps their title [RW-TURN-1] [RW-TURN-2]", async () => {
    const session_id = "sess_three_turns";
    const prompts = ["compare two databases", "and a third one", "which is smallest?"];
    const settled: string[] = [];
    const titles: string[] = [];
    for (const [i, prompt] of prompts.entries()) {
      const run_id = await start({ prompt, session_id, planning_gate: "off" });
      const before = prompts.slice(0, i).flatMap((content, turn) => [
        { role: "user", content },
        { role: "assistant", content: settled[turn] },
      ]);
      const { messages, history } = await askedIn(run_id);
      expect(messages).toEqual([...before, { role: "user", content: prompt }]);
      expect(history).toEqual(i === 0 ? undefined : { turns: i, truncated: false });
      const events = await ended(run_id);
      // A later question is a question, not a word to the run before.
      expect(answerIn(events)).toContain(`"${prompt}"`);
      settled.push(answerIn(events) ?? "");
      titles.push(...titlesIn(events));
    }
    expect(titles).toEqual(titles.map(() => "Compare two databases"));
    expect(titles).toHaveLength(3);
    const session = (await call(server.url, "GET", `/v1/agent/sessions/${session_id}`)).body;
    expect(session).toMatchObject({
      session_id,
      title: "Compare two databases",
      state: "done",
      turns_total: 3,
    });
  });

  it("is told no more than fits, the last of it, and that some is missing [RW-TURN-1]", async () => {
    const session_id = "sess_long";
    const messages = Array.from({ length: limits.historyMessagesMax + 10 }, (_, i) => ({
      role: i % 2 === 0 ? "user" : "assistant",
      content: `message ${i}`,
    }));
    const long = await createRun(server.url, { prompt: undefined, messages, session_id });
    await append(server.url, long, text("so be it"), lifecycle("done"));
    const next = await askedIn(await start({ prompt: "go on", session_id }));
    expect(next.history).toEqual({ turns: 1, truncated: true });
    // One that is settled is among the fifty; what is left begins with a question.
    expect(next.messages).toEqual([
      ...messages.slice(12),
      { role: "assistant", content: "so be it" },
      { role: "user", content: "go on" },
    ]);
    // What was said lies beside the log, and is told whole, or not at all.
    const [heard, unheard] = ["h".repeat(200_000), "u".repeat(100_000)];
    const steered = await createRun(server.url, { prompt: "so?", session_id });
    const steers = [unheard, heard].map((words) => say("steer.delivered", { text: words }));
    await append(server.url, steered, ...steers, lifecycle("done"));
    const then = await askedIn(await start({ prompt: "go on", session_id }));
    expect(then).toMatchObject({ history: { truncated: true }, messages: [{ content: heard }, {}] });
    const large = await createRun(server.url, { prompt: "x".repeat(200_000), session_id });
    await append(server.url, large, say("message.settled", { text: "y".repeat(100_000) }), lifecycle("done"));
    const last = await askedIn(await start({ prompt: "go on", session_id }));
    expect(last).toMatchObject({ history: { truncated: true }, messages: [{ content: "go on" }] });
  });

  it("is told nothing by live turns, nor where it brings its own messages [RW-TURN-1]", async () => {
    const session_id = "sess_own";
    const first = await createRun(server.url, { prompt: "one", session_id });
    const early = await askedIn(await start({ prompt: "two", session_id, planning_gate: "required" }));
    expect([early.messages, early.history]).toEqual([[{ role: "user", content: "two" }], undefined]);
    await append(server.url, first, say("title", { title: "Ones" }), text("said, and never settled"));
    await control(server.url, first, "abort");
    const messages = [{ role: "user", content: "my own" }];
    const own = await start({ messages, session_id, planning_gate: "required" });
    expect([(await askedIn(own)).messages, (await askedIn(own)).history]).toEqual([messages, undefined]);
    expect(titlesIn(await allEvents(server.url, own))).toEqual(["Ones"]);
    const later = await askedIn(await start({ prompt: "three", session_id, planning_gate: "required" }));
    expect(later.messages).toEqual([
      { role: "user", content: "one" },
      { role: "user", content: "three" },
    ]);
  });
});
