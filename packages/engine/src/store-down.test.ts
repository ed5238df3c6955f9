// A store that takes nothing for a moment costs a run that moment, and nothing of its work.

import { type Draft, type Facts, RunwireError } from "@runwire/protocol";
import { type Agent, InDoubt, type RunKey } from "@runwire/server";
import { expect, test } from "vitest";
import { demoModel } from "./demo/model.js";
import type { Model } from "./model.js";
import { spawnTool } from "./spawn.js";
import { payloadsOf, readRun, served, startRun } from "./testing/served.js";
import { thinkingModel } from "./testing/thinking.js";

const usage = { input_tokens: 1, output_tokens: 1, reasoning_tokens: 0, cached_tokens: 0 };

/** Gives its task to a child, who says that it is done. */
const delegating: Model = {
  ...demoModel({ wordMs: 0 }),
  async *stream({ messages, aside }) {
    const last = messages.at(-1);
    const isFirst = aside === undefined && last?.role === "user" && last.content === "Delegate";
    if (isFirst) yield { kind: "call", call_id: "c", tool: "spawn", input: { prompt: "Do it" } };
    else yield { kind: "text", text: "Done." };
    yield { kind: "finished", reason: isFirst ? "calls" : "stop", usage, refs: {} };
  },
};

const inParts = thinkingModel(() => JSON.stringify({ nodes: [{ id: "a", task: "Do it" }] }));

/** A run's events, where the store is full when its first child is to be spawned. */
async function runOf(model: Model, agent: string) {
  let refusals = 1;
  const server = await served({
    model: () => model,
    tools: [spawnTool],
    around: (makeAgent) => (host) =>
      makeAgent({
        ...host,
        writer: {
          ...host.writer,
          async spawn(...asked) {
            if (refusals-- > 0) throw new RunwireError("KAI-SERVER-STORE-0002");
            return host.writer.spawn(...asked);
          },
        },
      }),
  });
  try {
    return await readRun(server.url, await startRun(server.url, { prompt: "Delegate", agent }));
  } finally {
    await server.close();
  }
}

test("a helper that could not be spawned because the disk was full is spawned when there is room", async () => {
  const events = await runOf(delegating, "react");
  expect(payloadsOf(events, "child.spawn")).toHaveLength(1);
  expect(payloadsOf(events, "tool.end")).toMatchObject([{ ok: true, output: { text: "Done." } }]);
  expect(payloadsOf(events, "task.attempt.failed")).toMatchObject([
    { reason: "lost: the server stopped, or could not write" },
  ]);
  expect(events.at(-1)?.payload).toMatchObject({ state: "done" });
});

test("a part of a graph that could not be begun because the disk was full is begun when there is room", async () => {
  const events = await runOf(inParts, "got");
  expect(payloadsOf(events, "got.node_failed")).toEqual([]);
  expect(payloadsOf(events, "got.node_complete")).toMatchObject([{ id: "a" }]);
  expect(events.at(-1)?.payload).toMatchObject({ state: "done" });
});

test("a checkpoint that an event in doubt names is kept until something is written [RW-CKPT-2]", async () => {
  let doubted: string | undefined;
  let keptMeanwhile: readonly string[] | undefined;
  let kept = async (_: RunKey): Promise<readonly string[]> => [];
  const server = await served({
    around: (makeAgent) => (host) => {
      const agent: Agent = makeAgent({
        ...host,
        writer: {
          ...host.writer,
          async append(run, drafts, claim) {
            if (doubted !== undefined) keptMeanwhile ??= await kept(run);
            doubted ??= checkpointIn(drafts);
            if (doubted !== undefined && keptMeanwhile === undefined) throw new InDoubt("disk I/O error");
            return host.writer.append(run, drafts, claim);
          },
        },
      });
      kept = async (run) => {
        const head = await host.head(run);
        return head === undefined ? [] : [...(await agent.checkpoints.kept(head.run)).keys()];
      };
      return agent;
    },
  });
  try {
    const run_id = await startRun(server.url, {});
    const events = await readRun(server.url, run_id);
    expect(keptMeanwhile).toEqual([doubted]);
    // It was not stored after all: what nobody was told of goes.
    const named = payloadsOf(events, "step.boundary").map(({ checkpoint_id }) => checkpoint_id);
    expect(named).not.toContain(doubted);
    expect(await kept({ tenant: "default", run_id })).toEqual(named);
  } finally {
    await server.close();
  }
});

function checkpointIn(drafts: readonly Draft[]): string | undefined {
  const [id] = drafts.flatMap(({ type, payload }) =>
    type === "step.boundary" ? [(payload as Facts).checkpoint_id] : [],
  );
  return id === undefined ? undefined : String(id);
}
