// Trees and graphs of thoughts on real wires: what providers are asked for, and what is made of what they say.

import { describe, expect, test } from "vitest";
import type { ModelEnv } from "../providers/choose.js";
import { answering } from "../testing/asides.js";
import type { FakeRequest, Turn } from "../testing/fake-provider.js";
import { endedRun, joined, payloadsOf, servedOnFake, startRun } from "../testing/served.js";
import { secretKey } from "../testing/under-test.js";
import { type FakeWire, plainAnswer } from "../testing/wires/answer.js";
import { anthropicWire } from "../testing/wires/anthropic.js";
import { responsesWire } from "../testing/wires/responses.js";

const { fake, server } = await servedOnFake();

const wires: readonly (readonly [model: string, wire: FakeWire, env: (url: string) => ModelEnv])[] = [
  [
    "anthropic/claude-sonnet-5-5",
    anthropicWire,
    (url) => ({ ANTHROPIC_API_KEY: secretKey, ANTHROPIC_BASE_URL: url }),
  ],
  ["openai/gpt-6.1-sol", responsesWire, (url) => ({ OPENAI_API_KEY: secretKey, OPENAI_BASE_URL: url })],
];

type Ask = "expand" | "evaluate" | "plan" | "grow" | "answer";

function askIn({ body }: FakeRequest): Ask {
  const text = JSON.stringify(body);
  if (text.includes("Score each from 0 to 1")) return "evaluate";
  if (text.includes("different thoughts on")) return "expand";
  if (text.includes("Does more have to be done")) return "grow";
  return text.includes("Divide the task") ? "plan" : "answer";
}

const fenced = (value: unknown): string => `Here:\n\`\`\`json\n${JSON.stringify(value, null, 1)}\n\`\`\`\n`;
const toolsIn = ({ body }: FakeRequest): number =>
  ((body as { tools?: readonly unknown[] }).tools ?? []).length;

describe.each(wires)("%s", (model, wire, env) => {
  /** Answers as scripted; the requests by what they ask for. */
  async function run(
    agent: string,
    say: (ask: Ask, request: FakeRequest, n: number) => string,
    cutAsk?: Ask,
  ) {
    server.given(env(fake.url));
    const asked: { readonly ask: Ask; readonly request: FakeRequest }[] = [];
    let isCut = cutAsk === undefined;
    fake.script(
      answering((request, n): Turn => {
        const ask = askIn(request);
        asked.push({ ask, request });
        const text = say(ask, request, n);
        const answer = { ...plainAnswer, text: text.slice(request.partial.length), reasoning: "Hm. " };
        if (isCut || ask !== cutAsk) return { kind: "answer", answer };
        isCut = true;
        const afterBytes = Math.floor(Buffer.byteLength(wire.encode(answer, "x")) / 2);
        return { kind: "answer", answer, cut: { afterBytes, how: "line" } };
      }),
    );
    const run_id = await startRun(server.url, {
      agent,
      model,
      got_adaptive: true,
      prompt: "Choose a colour",
    });
    return { events: await endedRun(server.url, run_id), asked };
  }

  test("a tree is asked for without tools, also where a line breaks, and followed with them", async () => {
    const { events, asked } = await run(
      "tot",
      (ask) =>
        ask === "expand"
          ? fenced({ candidates: ["Go by the light", "Go by the mood", "Toss a coin"] })
          : ask === "evaluate"
            ? fenced({ scores: [2, 9, 1] })
            : "Blue.",
      "expand",
    );
    expect(events.at(-1)?.payload).toMatchObject({ state: "done" });
    const asks = asked.map(({ ask }) => ask);
    // The one that was cut off was asked for again.
    expect(asks).toEqual([
      "expand",
      ...Array.from({ length: 3 }, () => ["expand", "evaluate"]).flat(),
      "answer",
    ]);
    expect(asked.map(({ ask, request }) => toolsIn(request) > 0 === (ask === "answer"))).not.toContain(false);
    for (const { request } of asked) expect(JSON.stringify(request.body)).toContain("Choose a colour");
    expect(payloadsOf(events, "tot.evaluate")).toEqual(
      Array.from({ length: 3 }, () => ({ chosen: 1, scores: [0.2, 0.9, 0.1] })),
    );
    expect(JSON.stringify(asked.at(-1)?.request.body)).toContain("- Go by the mood\\n- Go by the mood");
    expect(joined(events, "text.delta")).toBe("Blue.");
    const thoughts = payloadsOf(events, "reasoning.delta").filter(({ node }) => node === "think_expand");
    expect(thoughts.map(({ text }) => text).join("")).toContain("2. Go by the mood");
    // Each try is paid for, and nothing that was asked is left out.
    expect(payloadsOf(events, "usage").reduce((sum, one) => sum + Number(one.requests), 0)).toBe(
      asks.length + 2,
    );
  });

  test("a graph is asked for, its parts are told what they need, and the answer is put together", async () => {
    const nodes = [
      { id: "light", task: "Say how light the room is" },
      { id: "paint", task: "Name a paint", depends_on: ["light", "nothing"] },
    ];
    const { events, asked } = await run("got", (ask, request) => {
      if (ask === "plan") return fenced({ nodes });
      if (ask === "grow") return fenced({ nodes: [] });
      const text = JSON.stringify(request.body);
      if (text.includes("The task was done in parts")) return "Take the bright one.";
      return text.includes("Name a paint") ? "Ocean 5" : "Rather dark";
    });
    expect(events.at(-1)?.payload).toMatchObject({ state: "done" });
    expect(payloadsOf(events, "got.node_complete")).toMatchObject([
      { id: "light", result_summary: "Rather dark" },
      { id: "paint", result_summary: "Ocean 5" },
    ]);
    expect(joined(events, "reasoning.delta")).toContain("Left out: paint needs nothing, which is not there.");
    const answers = asked
      .filter(({ ask }) => ask === "answer")
      .map(({ request }) => JSON.stringify(request.body));
    expect(answers).toHaveLength(3);
    expect(answers[1]).toContain("Rather dark");
    for (const part of ["Rather dark", "Ocean 5"]) expect(answers[2]).toContain(part);
    expect(asked.filter(({ ask }) => ask === "grow")).toHaveLength(2);
    expect(joined(events, "text.delta")).toBe("Take the bright one.");
  });

  test("what cannot be read is asked for once more, and then it answers plainly", async () => {
    const { events, asked } = await run("tot", (ask) =>
      ask === "answer" ? "Green." : "I would rather not.",
    );
    expect(asked.map(({ ask }) => ask)).toEqual(["expand", "expand", "answer"]);
    expect(JSON.stringify(asked[1]?.request.body)).toContain("could not be read");
    expect(payloadsOf(events, "model.completed").map(({ unusable }) => unusable)).toEqual([
      true,
      true,
      undefined,
    ]);
    expect(payloadsOf(events, "message.settled")).toMatchObject([{ text: "Green." }]);
  });
});
