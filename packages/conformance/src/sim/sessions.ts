// Those who write in append sessions: one long request, a line a draft, and an answer for each commit. Where it breaks off
// they ask how far they came, and go on from there in another.

import { request } from "node:http";
import { type Draft, type ErrorCode, limits, lineSplitter, RunwireError } from "@runwire/protocol";
import { beginRun, expectAlways, type Production } from "./producing.js";
import type { World } from "./world.js";

/** Of a connection that has gone silent. */
const patienceMs = 60_000;

interface Answer {
  readonly last_producer_seq?: number;
  readonly error?: { readonly code: ErrorCode; readonly retry: boolean };
}

export async function writeInSessions(
  world: World,
  name: string,
  drafts: readonly Draft[],
): Promise<Production> {
  const made = await beginRun(world, name, drafts);
  const { run_id } = made;
  expectAlways(world, made);
  world.begin(`producer of ${name} in sessions`, async () => {
    while (!made.isOver && made.acknowledged < drafts.length) {
      const { last_producer_seq } = await world.persistently(() => world.api.producer(run_id, "p"));
      made.acknowledged = last_producer_seq;
      if (last_producer_seq < drafts.length) await session(world, made);
      await world.sleep(world.whole(10, 1000));
    }
  });
  return made;
}

/** Resolves when the connection is gone. */
function session(world: World, made: Production): Promise<void> {
  const from = made.acknowledged;
  let isGone = false;
  const sent = request(`http://127.0.0.1:4700/v1/agent/runs/${made.run_id}/events`, {
    method: "POST",
    headers: {
      "content-type": "application/x-ndjson",
      "producer-id": "p",
      "producer-epoch": "1",
      "producer-seq": String(from + 1),
    },
    createConnection: world.network.connect as never,
  });
  const patience = setTimeout(() => sent.destroy(), patienceMs);

  function heard(line: string): void {
    const { last_producer_seq, error } = JSON.parse(line) as Answer;
    if (last_producer_seq !== undefined) {
      made.acknowledged = Math.max(made.acknowledged, last_producer_seq);
      patience.refresh();
    }
    if (error?.code === "KAI-RUN-ENDED-0001") made.isOver = true;
    else if (error !== undefined && !error.retry && !world.mayPass(new RunwireError(error.code)))
      throw new Error(`${made.run_id}: ${error.code}`);
  }

  async function writeAll(): Promise<void> {
    for (const draft of made.drafts.slice(from)) {
      if (isGone) return;
      sent.write(`${JSON.stringify(draft)}\n`);
      if (world.whole(0, 2) === 0) await world.sleep(world.whole(0, 300));
    }
    sent.end();
  }

  return new Promise((resolve, reject) => {
    sent.once("error", () => {});
    sent.once("close", () => {
      isGone = true;
      clearTimeout(patience);
      resolve();
    });
    sent.once("response", (answer) => {
      const lines = lineSplitter(limits.eventBytesMax);
      // What breaks off closes it too.
      answer.on("error", () => {});
      answer.setEncoding("utf8").on("data", (text: string) => {
        try {
          for (const line of lines.push(text)) heard(line);
        } catch (error) {
          reject(error);
        }
      });
    });
    writeAll().catch(reject);
  });
}
