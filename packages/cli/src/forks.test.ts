import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runwire, startOnTerminal } from "./testing/command.js";
import { served, serveKeyed } from "./testing/served.js";

const server = served("forks");

const command = (...args: readonly string[]): ReturnType<typeof runwire> => runwire(args, server.env);

/** A run that waits for a plan of its own to be approved: it has a checkpoint, and does nothing by itself. */
async function planned(): Promise<{ readonly run_id: string; readonly checkpoint_id: string }> {
  const { out } = await command("run", "compare two databases", "--plan", "required", "--detach");
  const run_id = out.trim();
  for (;;) {
    const [first] = (await server.api.checkpoints(run_id)).checkpoints;
    if (first !== undefined) return { run_id, checkpoint_id: first.checkpoint_id };
  }
}

describe("runwire checkpoints", () => {
  it("lists them for people and for programs", async () => {
    const { run_id, checkpoint_id } = await planned();
    const plain = await command("checkpoints", run_id);
    const [head, row] = plain.out.split("\n");
    expect(head).toBe("CHECKPOINT\tSTEP\tKIND\tPOS\tAGE\tBYTES");
    expect(row?.split("\t").slice(0, 3)).toEqual([checkpoint_id, "0", "plan"]);
    expect(row?.split("\t").at(-1)).toMatch(/^\d+$/);
    const { out } = await command("checkpoints", run_id, "--json");
    expect(JSON.parse(out)).toMatchObject({ checkpoint_id, step_kind: "plan", kept: true });
    const terminal = startOnTerminal(["checkpoints", run_id], server.env);
    expect((await terminal.exited).out).toContain(`${checkpoint_id}  0     plan`);
  });

  it("says where there are none, and which are gone", async () => {
    const { run_id } = await server.api.createRun({ prompt: "x", producer: "external" });
    expect(await command("checkpoints", run_id)).toEqual({
      code: 0,
      out: "",
      err: `${run_id} has no checkpoints\n`,
    });
    const step = { step_index: 0, step_kind: "done" as const, checkpoint_id: "ckpt_theirs" };
    await server.api.append(run_id, [{ type: "step.boundary", payload: step }]);
    expect((await command("checkpoints", run_id)).out).toMatch(/^ckpt_theirs\t0\tdone\t3\t.*\tgone$/m);
    const { code, out, err } = await command("rewind", run_id, "ckpt_theirs");
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain("KAI-RUN-POINT-0002");
    expect((await server.api.getRun(run_id)).state).toBe("running");
  });
});

describe("runwire fork and rewind", () => {
  it("begin another run from the point that is named; a rewind ends the first", async () => {
    const { run_id, checkpoint_id } = await planned();
    const points = [["--at", "2"], ["--checkpoint", checkpoint_id], []];
    const told: string[] = [];
    for (const point of points) {
      const { code, out, err } = await command("fork", run_id, ...point, "--prompt", "and another");
      expect({ code, err }).toEqual({ code: 0, err: "" });
      told.push(out.replaceAll(out.slice(0, 30), "it"));
    }
    expect(told).toEqual([
      `it is planning from ${run_id} at 2, workspace fresh; its plan waits for approval: runwire approve it\n`,
      expect.stringMatching(
        /^it is planning from run_\w+ at \d+, workspace restored; its plan waits for approval: runwire approve it\n$/,
      ),
      expect.stringMatching(
        /^it is planning from run_\w+ at \d+, workspace restored; its plan waits for approval: runwire approve it\n$/,
      ),
    ]);
    expect((await server.api.getRun(run_id)).state).toBe("awaiting_approval");
    const { out } = await command("rewind", run_id, checkpoint_id, "--prompt", "once more");
    const [next = ""] = out.split(" ");
    expect(await server.api.getRun(run_id)).toMatchObject({
      state: "aborted",
      reason: `rewound, continues as ${next}`,
    });
    expect((await server.api.getRun(next)).forked_from).toMatchObject({ run_id, checkpoint_id });
  });

  it("say what was made also to who may not read it, and name the server that was named", async () => {
    const { run_id } = await planned();
    const { out: plain } = await runwire(["fork", run_id, "--url", server.url]);
    expect(plain).toMatch(new RegExp(`: runwire approve run_\\w+ --url ${server.url}\n$`));
    const keyed = await serveKeyed(join(server.folder, "keyed"), "write");
    const env = { RUNWIRE_URL: keyed.url, RUNWIRE_TOKEN: keyed.keys[0] };
    const made = await runwire(["run", "compare two databases", "--plan", "required", "--detach"], env);
    const forked = await runwire(["fork", made.out.trim()], env);
    await keyed.stop();
    expect(forked).toEqual({
      code: 0,
      out: expect.stringMatching(/^run_\w+ is planning from run_\w+ at \d+, workspace \w+\n$/),
      err: "",
    });
  });

  it("name what they cannot take", async () => {
    for (const [flags, why] of [
      [["--at", "two"], '--at: "two" is not possible'],
      [["--at", "1", "--checkpoint", "ckpt_1"], "name one"],
    ] as const) {
      const { code, err } = await command("fork", "run_1", ...flags);
      expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(why) });
    }
  });
});
