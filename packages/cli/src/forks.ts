// `runwire checkpoints`, `fork` and `rewind`: another run from an earlier point of one.

import { type Checkpoint, type Endpoint, type ForkedRun, gateway } from "@runwire/client";
import type { Command } from "commander";
import { addServerOptions, reach, type ServerFlags, sameServer } from "./server-flags.js";
import { listing, writeFound } from "./terminal.js";
import { ageWords } from "./watch/words.js";

interface ForkFlags extends ServerFlags {
  readonly at?: string;
  readonly checkpoint?: string;
  readonly prompt?: string;
  readonly json?: boolean;
}

const columns = ["CHECKPOINT", "STEP", "KIND", "POS", "AGE", "BYTES"];
const run = "run_01HZ7K3M000000000000000000";
const checkpoint = "ckpt_01HZ7K4PXA8QJ2M5V0T3RC6NBW";

export function addForks(program: Command): void {
  addCheckpoints(program);
  const fork = program
    .command("fork")
    .description("begin another run from a point of one, which stays as it is")
    .argument("<run>", "its id")
    .option("--at <pos>", "up to this event; all of the run where no point is named")
    .option("--checkpoint <id>", "or up to the step with this checkpoint")
    .option("--prompt <text>", "what to ask next")
    .option("--json", "what the server answers");
  addServerOptions(fork).addHelpText(
    "after",
    `\nExample:\n  runwire fork ${run} --at 42 --prompt "in French"`,
  );
  fork.action((run_id: string, flags: ForkFlags) =>
    reach(flags, async (endpoint) => {
      const from = { ...pointOf(flags), ...(flags.prompt === undefined ? {} : { prompt: flags.prompt }) };
      await tell(endpoint, await gateway(endpoint).fork(run_id, from), flags);
    }),
  );
  const rewind = program
    .command("rewind")
    .description("go back to a checkpoint: the run ends, and another goes on from there with its files")
    .argument("<run>", "its id")
    .argument("<checkpoint>", "its id; `runwire checkpoints` lists them")
    .option("--prompt <text>", "what to ask next")
    .option("--json", "what the server answers");
  addServerOptions(rewind).addHelpText("after", `\nExample:\n  runwire rewind ${run} ${checkpoint}`);
  rewind.action((run_id: string, checkpoint_id: string, flags: ForkFlags) =>
    reach(flags, async (endpoint) => {
      const { prompt } = flags;
      const to = { checkpoint_id, ...(prompt === undefined ? {} : { prompt }) };
      await tell(endpoint, await gateway(endpoint).rewind(run_id, to), flags);
    }),
  );
}

function addCheckpoints(program: Command): void {
  const checkpoints = program
    .command("checkpoints")
    .description("list the points of a run whose files were kept, oldest first")
    .argument("<run>", "its id")
    .option("--json", "as the server has them, one object a line");
  addServerOptions(checkpoints).addHelpText("after", `\nExample:\n  runwire checkpoints ${run}`);
  checkpoints.action((run_id: string, flags: ServerFlags & { readonly json?: boolean }) =>
    reach(flags, async (endpoint) => {
      const { checkpoints: found } = await gateway(endpoint).checkpoints(run_id);
      writeFound(found, flags, `${run_id} has no checkpoints`, () => checkpointList(found, Date.now()));
    }),
  );
}

/** Those that are gone are grey. */
function checkpointList(checkpoints: readonly Checkpoint[], nowMs: number): string {
  const rows = checkpoints.map(({ checkpoint_id, step_index, step_kind, pos, ts, bytes }) => [
    checkpoint_id,
    String(step_index),
    step_kind,
    String(pos),
    ageWords(nowMs - Date.parse(ts)),
    bytes === null ? "gone" : String(bytes),
  ]);
  return listing(columns, rows, { colourOf: (row) => (checkpoints[row]?.kept ? undefined : "grey") });
}

function pointOf({ at, checkpoint: checkpoint_id }: ForkFlags): {
  readonly at?: number;
  readonly checkpoint_id?: string;
} {
  if (at !== undefined && checkpoint_id !== undefined)
    throw new Error("--at and --checkpoint are two points: name one");
  if (checkpoint_id !== undefined) return { checkpoint_id };
  if (at === undefined) return {};
  if (!/^[1-9][0-9]{0,14}$/.test(at))
    throw new Error(`--at: ${JSON.stringify(at)} is not possible; it takes the pos of an event`);
  return { at: Number(at) };
}

async function tell(endpoint: Endpoint, made: ForkedRun, flags: ForkFlags): Promise<void> {
  if (flags.json) {
    process.stdout.write(`${JSON.stringify(made)}\n`);
    return;
  }
  const { run_id, state, forked_from, workspace } = made;
  const from = `from ${forked_from.run_id} at ${forked_from.pos}`;
  process.stdout.write(`${run_id} is ${state.replace("_", " ")} ${from}, workspace ${workspace}`);
  // The run it is made from had a gate, and so has it. Who may not read it has made it all the same.
  const gate = await gateway(endpoint)
    .getRun(run_id)
    .then(
      ({ planning_gate }) => planning_gate,
      () => undefined,
    );
  const approve = `runwire approve ${run_id}${sameServer(flags)}`;
  process.stdout.write(gate === "required" ? `; its plan waits for approval: ${approve}\n` : "\n");
}
