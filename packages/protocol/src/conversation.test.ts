import { describe, expect, test } from "vitest";
import { type Conversation, converse, emptyConversation, messagesOf } from "./conversation.js";
import type { Draft, Event, Facts } from "./events.js";

const ts = "2026-01-01T00:00:00.000Z";

function told(...facts: readonly (readonly [Draft["type"], Facts])[]): Conversation {
  const base = { id: "evt_1", ts, run_id: "run_1", child_id: null, pos: 1, seq: 1 };
  const events = facts.map(([type, payload]) => ({ ...base, type, payload }) as Event);
  return events.reduce((c, e) => converse(c, e), emptyConversation);
}

const user = (content: string): Facts => ({ role: "user", content });
const answer = (content: string): Facts => ({ role: "assistant", content });
const answered = (content: string): Facts => ({ ...answer(content), calls: [] });
const asked = {
  messages: [user("What is it?")],
  tools: ["search"],
  approvals: "always",
  budget_usd: 1,
};

// Whoever writes a run from outside says again what it was asked, or what it is asked next. [RW-FORK-1] [RW-FORK-2]
// [RW-TURN-1]
describe("a turn that is submitted again", () => {
  const first = [
    ["turn.submitted", asked],
    ["text.delta", { text: "It is 42." }],
  ] as const;

  test("changes nothing where it brings no messages", () => {
    for (const empty of [{}, { messages: [] }, { message: "" }, { prompt: " \n" }]) {
      const again = told(...first, ["turn.submitted", { turn_id: "turn_2", ...empty }]);
      expect(again.asked).toEqual(asked);
      expect(again.text).toBe("It is 42.");
      expect(messagesOf(again)).toEqual([user("What is it?"), answered("It is 42.")]);
      expect(again.history).toEqual([user("What is it?")]);
    }
  });

  test("goes on with what it asks, and leaves what the run was given", () => {
    const next = told(...first, ["turn.submitted", { messages: [user("Why?")], tools: [] }]);
    expect(next.asked).toEqual(asked);
    expect(messagesOf(next)).toEqual([user("What is it?"), answered("It is 42."), user("Why?")]);
    expect(next.history).toEqual([user("What is it?"), user("Why?")]);
  });

  test("goes on with words that stand by themselves, or before what is no answer", () => {
    const why = [user("What is it?"), answered("It is 42."), user("Why?")];
    const system = { role: "system", content: "Be brief." };
    for (const payload of [
      { prompt: "Why?" },
      { prompt: "", message: "Why?" },
      { messages: [], prompt: "Why?" },
      { messages: [user("Why?"), system] },
    ])
      expect(messagesOf(told(...first, ["turn.submitted", payload]))).toEqual(why);
  });

  test("says no word twice that it only repeats", () => {
    const repeated = told(["turn.submitted", asked], ["turn.submitted", { messages: asked.messages }]);
    expect(messagesOf(repeated)).toEqual(asked.messages);
    const instructed = { messages: [user("Look."), { role: "system", content: "Be brief." }, user("Why?")] };
    for (const messages of [instructed.messages, instructed.messages.slice(0, 2)]) {
      const again = told(["turn.submitted", { messages }], ["turn.submitted", { messages }]);
      expect(messagesOf(again)).toEqual(messages);
    }
    const messages = [...asked.messages, answer("It is 42."), user("Why?")];
    const whole = told(...first, ["turn.submitted", { messages }]);
    expect(messagesOf(whole)).toEqual([user("What is it?"), answered("It is 42."), user("Why?")]);
  });

  test("is no repetition where it says something else in a form that we do not know", () => {
    for (const said of [
      (text: string): Facts => ({ role: "user", parts: [{ type: "text", text }] }),
      (image: string): Facts => ({ role: "user", content: "Look.", images: [image] }),
    ]) {
      const twice = ["a", "b"].map((text) => ["turn.submitted", { messages: [said(text)] }] as const);
      expect(messagesOf(told(...twice))).toEqual([said("a"), said("b")]);
    }
  });

  test("says no word twice that it repeats more briefly", () => {
    const messages = [{ role: "user", content: "Why?", name: "ann" }];
    const again = told(["turn.submitted", { messages }], ["turn.submitted", { prompt: "Why?" }]);
    expect([messagesOf(again), again.history]).toEqual([messages, [user("Why?")]]);
  });

  test("says no word twice that comes with what is no word", () => {
    for (const more of [{ name: null }, { created_at: 1 }, { is_draft: false }]) {
      const again = { messages: [{ ...user("What is it?"), ...more }] };
      const whole = told(["turn.submitted", asked], ["turn.submitted", again]);
      expect([messagesOf(whole), whole.history]).toEqual([asked.messages, asked.messages]);
    }
  });

  test("is no repetition where nothing in it is said", () => {
    for (const more of [{ id: "msg_2" }, { created_at: 1 }]) {
      const messages = [{ role: "user", ...more }];
      const whole = told(["turn.submitted", asked], ["turn.submitted", { messages }]);
      expect(messagesOf(whole)).toEqual([...asked.messages, ...messages]);
    }
  });

  test("repeats what lies beside the log where it lies there too, and nothing that only begins like it", () => {
    const where = (blob_ref: string): Facts => ({ blob_ref, bytes: 70_000, preview: "It was" });
    const long = (blob_ref: string): Facts => ({ ...user("It was"), spilled: { content: where(blob_ref) } });
    const steer = ["steer.delivered", { text: "It was", spilled: { text: where("blob_1") } }] as const;
    for (const [words, said] of [
      [long("blob_1"), []],
      [long("blob_2"), [long("blob_2")]],
    ] as const) {
      const whole = told(["turn.submitted", asked], steer, ["turn.submitted", { messages: [words] }]);
      expect(messagesOf(whole)).toEqual([...asked.messages, long("blob_1"), ...said]);
      expect(whole.history).toHaveLength(2 + said.length);
    }
    const short = told(
      ["turn.submitted", { messages: [user("It was")] }],
      ["turn.submitted", { messages: [long("blob_1")] }],
    );
    expect(messagesOf(short)).toEqual([user("It was"), long("blob_1")]);
  });

  test("adds what it says beyond what it repeats", () => {
    const steer = ["steer.delivered", { text: "Be brief." }] as const;
    const [look, brief, why] = [user("Look."), user("Be brief."), user("Why?")] as const;
    const next = (...messages: readonly Facts[]) => ["turn.submitted", { messages }] as const;
    for (const turns of [
      [next(look), next(look, brief), next(look, brief, why)],
      [next(look), steer, next(look, brief, why)],
      [next(look), steer, next(brief), next({ id: "msg_2", ...look }, brief, why)],
    ]) {
      const whole = told(...turns);
      expect(messagesOf(whole)).toEqual([look, brief, why]);
      expect(whole.history).toEqual([look, brief, why]);
    }
  });

  test("may have any number of words", () => {
    const words = Array.from({ length: 300_000 }, (_, i) => user(`${i}`));
    const again = told(...first, ["turn.submitted", { messages: words }]);
    expect([messagesOf(again).length, again.history.length]).toEqual([300_002, 300_001]);
  });

  test("is what the run begins with where that was asked nothing", () => {
    const messages = [user("Hello"), answer("Hello!"), user("What is it?")];
    const begun = told(
      ["turn.submitted", { messages: [], tools: ["search"] }],
      ["turn.submitted", { messages: [null, ...messages] }],
    );
    expect(begun.asked).toEqual({ messages: [], tools: ["search"] });
    expect([messagesOf(begun), begun.history]).toEqual([messages, messages]);
  });
});

// [RW-FORK-1]
describe("a settled message", () => {
  const searched = [
    ["turn.submitted", asked],
    ["text.delta", { text: "Let me look. " }],
    ["tool.start", { call_id: "c", tool: "search", input: {} }],
    ["tool.end", { call_id: "c", ok: true, output: 42 }],
  ] as const;
  const contents = (c: Conversation): readonly unknown[] =>
    messagesOf(c).flatMap((one: Facts) => (one.role === "assistant" ? [one.content] : []));

  test("is an answer where nobody streamed it", () => {
    const settled = told(...searched, ["message.settled", { text: "It is 42" }]);
    expect(contents(settled)).toEqual(["Let me look. ", "It is 42"]);
  });

  test.each([
    ["as it came", { text: "It is 42" }],
    ["with all that was said around its calls", { text: "Let me look.\n\nIt is 42" }],
    ["as it begins", { text: "Let me look. It", truncated: true }],
  ])("is no second answer where it was streamed, %s", (_, payload) => {
    const said = told(...searched, ["text.delta", { text: "It is 42\n" }], ["message.settled", payload]);
    expect(contents(said)).toEqual(["Let me look. ", "It is 42\n"]);
  });
});
