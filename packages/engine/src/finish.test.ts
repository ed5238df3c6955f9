import { is } from "@runwire/protocol";
import { expect, test } from "vitest";
import { endedRun, payloadsOf, post, readRun, served, startRun } from "./testing/served.js";

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
