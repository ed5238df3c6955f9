// What a whole tree has used up, with tries that fail among it: nothing is lost, and nothing counts twice.

import type { Facts } from "@runwire/protocol";
import fc from "fast-check";
import { expect, test } from "vitest";
import { spawnTool } from "./spawn.js";
import { answering, asideUsage } from "./testing/asides.js";
import type { FakeRequest, Turn } from "./testing/fake-provider.js";
import { payloadsOf, post, readRun, recordOf, servedOnFake, startRun } from "./testing/served.js";
import { type FakeAnswer, plainAnswer } from "./testing/wires/answer.js";
import { responsesWire } from "./testing/wires/responses.js";

const { fake, server } = await servedOnFake({ tools: [spawnTool] }, (url) => ({
  ...{ OPENAI_API_KEY: "key", OPENAI_BASE_URL: url },
  RUNWIRE_MODEL: "openai/gpt-5",
}));

const report: FakeAnswer = { ...plainAnswer, text: "That is what there is to say." };

function answerTo({ body }: FakeRequest, children: number): FakeAnswer {
  const asked = JSON.stringify(body);
  if (asked.includes("child_id") || !asked.includes("Please begin") || children === 0) return report;
  const calls = Array.from({ length: children }, (_, i) => ({
    ...{ call_id: `c${i}`, tool: "spawn" },
    args: JSON.stringify({ prompt: `Work on part ${i}` }),
  }));
  return { ...plainAnswer, calls, finish: "calls" };
}

type Fault = "turned away" | "fails" | "breaks off" | "none";

function faulty(fault: Fault, answer: FakeAnswer): Turn {
  const text = responsesWire.encode(answer, "gpt-5");
  switch (fault) {
    case "turned away":
      return { kind: "refusal", status: 429, headers: { "retry-after-ms": "1" }, body: "{}" };
    case "fails":
      return { kind: "refusal", status: 500, body: "{}" };
    case "breaks off": {
      // Behind the first of what it says: then it has begun, and something is paid for.
      const at = text.indexOf("delta", text.indexOf('delta"'));
      const afterBytes = Buffer.byteLength(text.slice(0, text.indexOf("\n\n", at) + 2));
      return { kind: "answer", answer, cut: { afterBytes, how: "clean" } };
    }
    case "none":
      return { kind: "answer", answer };
  }
}

const isSoak = process.env.RUNWIRE_SOAK !== undefined;
const testMsMax = isSoak ? 600_000 : 120_000;

test("the usage of a tree is that of every request in it that was answered, or began to be", {
  timeout: testMsMax,
}, async () => {
  const faults = fc.array(fc.constantFrom<Fault>("turned away", "fails", "breaks off", "none"), {
    maxLength: 4,
  });
  await fc.assert(
    fc.asyncProperty(faults, fc.nat(3), fc.nat(5000), async (faults, children, input) => {
      const usage = { input, cached: 0, output: 7, reasoning: 0 };
      let answered = 0;
      let broken = 0;
      fake.script(
        answering((request, n) => {
          const fault = faults[n] ?? "none";
          if (fault === "none") answered += 1;
          if (fault === "breaks off") broken += 1;
          const rest = report.text.slice(request.partial.length);
          const answer = answerTo(request, children);
          return faulty(fault, { ...answer, ...(answer === report ? { text: rest } : {}), usage });
        }),
      );
      const root = await startRun(server.url, { prompt: "Please begin" });
      const events = await readRun(server.url, root);
      const record = await recordOf(server.url, root);
      const asides = 2;
      expect(record).toMatchObject({
        state: "done",
        usage: {
          requests: answered + broken + asides,
          input_tokens: answered * input + asides * asideUsage.input,
        },
        cost: { known: broken === 0 },
      });
      const told = payloadsOf(events, "usage");
      expect(told).toHaveLength(answered + broken + asides);
      // What the root used itself, and its children's records, come to the same.
      const own = events.filter((e) => e.child_id === null && e.type === "usage").length;
      const below = await Promise.all(
        (record.children as readonly string[]).map((id) => recordOf(server.url, id)),
      );
      expect(below).toHaveLength(children);
      const requests = below.reduce((sum, child) => sum + Number((child.usage as Facts).requests), own);
      expect(requests).toBe(answered + broken + asides);
    }),
    { numRuns: isSoak ? 60 : 8 },
  );
});

test("a request that somebody aborts was used up all the same, and nobody knows what it cost", async () => {
  const text = responsesWire.encode(report, "gpt-5");
  const delta = text.indexOf("delta", text.indexOf('delta"'));
  const silentAfterBytes = Buffer.byteLength(text.slice(0, text.indexOf("\n\n", delta) + 2));
  const silent: Turn = { kind: "answer", answer: report, silentAfterBytes };
  // In the first try, and in one after a failure, which has no request of its own in the log.
  for (const turns of [[silent], [faulty("turned away", report), silent]]) {
    fake.script((_, n) => turns[n] ?? silent);
    const run_id = await startRun(server.url, { prompt: "Please begin" });
    await readRun(server.url, run_id, ({ type }) => type === "text.delta");
    await post(server.url, `/v1/agent/runs/${run_id}/abort`, {});
    const { usage, cost } = await recordOf(server.url, run_id);
    expect([usage, cost]).toMatchObject([{ requests: 1, unpriced_requests: 1 }, { known: false }]);
    expect((await readRun(server.url, run_id)).map(({ type }) => type).slice(-2)).toEqual([
      "usage",
      "run.lifecycle",
    ]);
  }
});
