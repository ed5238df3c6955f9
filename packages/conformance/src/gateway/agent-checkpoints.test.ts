// The agent's checkpoints, and kill -9: what a step names is there, and nothing else is.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Facts, is } from "@runwire/protocol";
import { describe, expect, it } from "vitest";
import { allEvents, call, control, runPath, startRun } from "./calls.js";
import { chance, isSoak } from "./chance.js";
import { openReading, readAll, streamPath } from "./readers.js";
import { ownProcess } from "./server-process.js";

const luck = chance("agent-checkpoints");
const kills = isSoak ? 20 : 2;
const prompt = "compare two charting libraries and save it";
const cli = fileURLToPath(new URL("../../../cli/bin/runwire.js", import.meta.url));
const server = ownProcess([process.execPath, cli, "serve"]);
const { folder } = server;

const workspaceOf = (run_id: string): string => join(folder, "workspaces", "default", run_id);
const treeOf = (run_id: string): string => join(folder, "checkpoints", "default", run_id);

async function listed(run_id: string): Promise<readonly Facts[]> {
  return (await call(server.url, "GET", runPath(run_id, "checkpoints"))).body.checkpoints as readonly Facts[];
}

describe("a run whose server is killed", () => {
  it(
    "has a checkpoint for every step, each there, and no other file [RW-CKPT-1] [RW-CKPT-3]",
    async () => {
      for (let kill = 0; kill < kills; kill++) {
        const run_id = await startRun(server.url, { prompt });
        const reading = await openReading("sse", server.url, streamPath({ run_id }));
        const heard = luck.whole(1, 80);
        // Or right after its end, where it has said less.
        await Promise.race([reading.ended, reading.until((now) => now.heard.length >= heard)]).catch(
          () => {},
        );
        await server.again("SIGKILL");
        await readAll("sse", server.url, streamPath({ run_id }));
        const events = await allEvents(server.url, run_id);
        const steps = events.flatMap((e) => (is(e, "step.boundary") ? [e] : []));
        const own = steps.filter(({ child_id }) => child_id === null);
        expect([heard, own.map(({ payload }) => payload.step_kind)]).toEqual([
          heard,
          ["plan", "fan-out", "fan-in", "tool-roundtrip", "done"],
        ]);
        const named = steps.map((e) => `${e.payload.checkpoint_id}-${e.child_id ?? run_id}`);
        expect([heard, readdirSync(treeOf(run_id)).toSorted()]).toEqual([heard, named.toSorted()]);
        expect(readdirSync(join(folder, "checkpoints", ".new"))).toEqual([]);
        const all = await listed(run_id);
        expect(all.map(({ kept }) => kept)).toEqual(own.map(() => true));
        const last = all.at(-1)?.checkpoint_id;
        const forked = await control(server.url, run_id, "fork", { checkpoint_id: last as string });
        expect([forked.status, forked.body.workspace]).toEqual([201, "restored"]);
        // A write that was cut off is not repeated, and then there is none.
        const report = (of: string): string | null => {
          const path = join(workspaceOf(of), "report.md");
          return existsSync(path) ? readFileSync(path, "utf8") : null;
        };
        const isWritten = events.some(
          (e) =>
            is(e, "tool.end") &&
            e.child_id === null &&
            (e.payload.output as Facts | null)?.path !== undefined,
        );
        expect([heard, report(run_id) !== null]).toEqual([heard, isWritten]);
        expect(report(forked.body.run_id as string)).toBe(report(run_id));
        await control(server.url, forked.body.run_id as string, "abort");
      }
    },
    kills * 60_000,
  );

  it("leaves nothing in the folder where it is erased while it works [RW-CKPT-5]", async () => {
    const run_id = await startRun(server.url, { prompt });
    const reading = await openReading("sse", server.url, streamPath({ run_id }));
    await reading.until(({ events }) => events.some((e) => is(e, "step.boundary")));
    await call(server.url, "DELETE", `/v1/agent/runs/${run_id}`);
    expect([workspaceOf(run_id), treeOf(run_id)].map((path) => existsSync(path))).toEqual([false, false]);
  });
});
