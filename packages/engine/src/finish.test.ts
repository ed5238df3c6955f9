import { is } from "@runwire/protocol";
import { describe, expect, test } from "vitest";
import { demoModel } from "./demo/model.js";
import type { Model } from "./model.js";
import { endedRun, payloadsOf, post, readRun, recordOf, served, startRun } from "./testing/served.js";

test("a run that is paused at its very end is paused, and ends when it is resumed", async () => {
  let isPaused = false;
  const server = await served({
    async before(run_id, drafts) {
      const isEnd = drafts.some((draft) => is(draft, "run.lifecycle") && draft.payload.state === "done");
      if (!isEnd || isPaused) return;
      isPaused = true;
      await post(server.url, `/v1/agent/runs/${run_id}/pause`, {});
    },
  });
  try {
    const run_id = await startRun(server.url, { model: "demo", prompt: "look" });
    await readRun(server.url, run_id, (e) => is(e, "run.lifecycle") && e.payload.state === "paused");
    await post(server.url, `/v1/agent/runs/${run_id}/resume`, {});
    const events = await endedRun(server.url, run_id);
    const states = payloadsOf(events, "run.lifecycle").map(({ state }) => state);
    expect(states).toEqual(["running", "paused", "running", "done"]);
    for (const type of ["message.settled", "title", "suggestions"])
      expect([type, payloadsOf(events, type).length]).toEqual([type, 1]);
  } finally {
    await server.close();
  }
});

test("a run that is redirected after its message says another, and has one title", async () => {
  let isRedirected = false;
  const server = await served({
    async before(run_id, drafts) {
      if (isRedirected || !drafts.some((draft) => is(draft, "title"))) return;
      isRedirected = true;
      await post(server.url, `/v1/agent/runs/${run_id}/redirect`, { instruction: "say hello" });
    },
  });
  try {
    const run_id = await startRun(server.url, { model: "demo", prompt: "look" });
    const events = await endedRun(server.url, run_id);
    expect(payloadsOf(events, "message.settled")).toMatchObject([
      {},
      { text: expect.stringContaining("Understood: say hello") },
    ]);
    expect(payloadsOf(events, "title")).toHaveLength(1);
    expect(events.at(-1)?.payload).toMatchObject({ state: "done" });
  } finally {
    await server.close();
  }
});

test("an answer of nothing is settled as nothing, not as what was said in the turn before", async () => {
  const silent: Model = {
    ...demoModel({ wordMs: 0 }),
    async *stream() {
      const usage = { input_tokens: 1, output_tokens: 0, reasoning_tokens: 0, cached_tokens: 0 };
      yield { kind: "finished", reason: "stop", usage, refs: {} };
    },
  };
  const server = await served({ model: () => silent });
  try {
    const messages = [
      { role: "user", content: "What is the capital of France?" },
      { role: "assistant", content: "Paris." },
      { role: "user", content: "And of Italy?" },
    ];
    const { run_id } = await post(server.url, "/v1/agent/runs", { messages });
    const events = await endedRun(server.url, String(run_id));
    expect(payloadsOf(events, "message.settled")).toMatchObject([{ text: "" }]);
  } finally {
    await server.close();
  }
});

describe("what was asked beside the answer is counted", () => {
  const demo = demoModel({ wordMs: 0 });
  const midway = "while the title is made";
  const elsewhere = { instruction: "say hello" };
  const cases = [
    ["pause", midway, {}],
    ["pause", "just before the end", {}],
    ["redirect", midway, elsewhere],
    ["redirect", "just before the end", elsewhere],
  ] as const;
  test.each(cases)("after a %s %s", async (action, when, body) => {
    let run_id = "";
    let begun = 0;
    let isInterrupted = false;
    const interrupt = async (): Promise<void> => {
      isInterrupted = true;
      await post(server.url, `/v1/agent/runs/${run_id}/${action}`, body);
    };
    const model: Model = {
      ...demo,
      async *stream(request, signal) {
        const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve));
        let isFirst = true;
        for await (const part of demo.stream(request, signal)) {
          if (isFirst) begun += 1;
          isFirst = false;
          yield part;
          if (isInterrupted || request.aside !== "title" || when !== midway) continue;
          await interrupt();
          await aborted;
        }
      },
    };
    const server = await served({
      model: () => model,
      async before(id, drafts) {
        run_id = id;
        if (!isInterrupted && drafts.some((draft) => is(draft, "title"))) await interrupt();
      },
    });
    try {
      const started = await startRun(server.url, { prompt: "look" });
      if (action === "pause") {
        await readRun(server.url, started, (e) => is(e, "run.lifecycle") && e.payload.state === "paused");
        await post(server.url, `/v1/agent/runs/${started}/resume`, {});
      }
      const events = await endedRun(server.url, started);
      expect(payloadsOf(events, "title")).toHaveLength(1);
      expect(payloadsOf(events, "usage")).toHaveLength(begun);
      expect((await recordOf(server.url, started)).usage).toMatchObject({ requests: begun });
    } finally {
      await server.close();
    }
  });
});
