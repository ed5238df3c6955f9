// `runwire run` and `runwire tail`: start a run, watch a run. A disconnect, or a watcher who leaves, never ends one.

import { type Endpoint, gateway, type NewRun } from "@runwire/client";
import { type Command, Option } from "commander";
import { exitCodes, leaving } from "./leaving.js";
import { addServerOptions, reach, type ServerFlags, sameServer } from "./server-flags.js";
import { addShowOptions, checkShowFlags, type ShowFlags } from "./watch/flags.js";
import { watch } from "./watch/watch.js";
import { followWire } from "./watch/wire.js";
import { dialectOf } from "./wires/dialect-flags.js";

interface WatchFlags extends ServerFlags, ShowFlags {}

interface RunFlags extends WatchFlags {
  readonly agent?: string;
  readonly adaptive?: boolean;
  readonly model?: string;
  readonly fallbackModels?: string;
  readonly budget?: string;
  readonly plan?: "off" | "preview" | "required";
  readonly approvals?: "never" | "destructive" | "always";
  readonly session?: string;
  readonly tools?: string;
  readonly detach?: boolean;
}

const codesHelp = "\nExit codes: 0 done, 1 error, 2 aborted, 130 left with Ctrl-C (the run goes on).";

export function addRun(program: Command): void {
  const run = program
    .command("run")
    .description("start a run and watch it")
    .argument("<prompt>", "what the agent is to do")
    .option(
      "--agent <name>",
      "how it goes about it: react, tot (tree of thoughts) or got (graph of thoughts)",
    )
    .option("--adaptive", "with --agent got: the graph may grow as its parts end")
    .option("--model <name>", "the model, where the server offers several")
    .option("--fallback-models <names>", "models that go on where that is given up on, with commas between")
    .option("--budget <usd>", "what it and all below it may cost, in US dollars")
    .addOption(
      new Option("--plan <gate>", "whether the run shows a plan first").choices([
        "off",
        "preview",
        "required",
      ]),
    )
    .addOption(
      new Option("--approvals <when>", "which tools ask first").choices(["never", "destructive", "always"]),
    )
    .option("--tools <names>", "only these tools, with commas between, as file.*,web.fetch")
    .option("--session <id>", "the session it belongs to")
    .option("--detach", "print the run's id and leave it to itself");
  addShowOptions(run, "thinking, inputs and outputs whole; with --json every token");
  addServerOptions(run);
  run.addHelpText(
    "after",
    `\nExample:\n  runwire run "compare three charting libraries" --plan required\n${codesHelp}`,
  );
  run.action((prompt: string, flags: RunFlags) =>
    reach(flags, async (endpoint) => {
      checkShowFlags(flags);
      const created = await gateway(endpoint).createRun(newRunOf(prompt, flags));
      if (!flags.detach) return show(endpoint, created.run_id, flags);
      process.stdout.write(`${flags.json ? JSON.stringify(created) : created.run_id}\n`);
    }),
  );
}

export function addTail(program: Command): void {
  const tail = program
    .command("tail")
    .description("watch a run from its start, and answer what it asks")
    .argument("<run>", "its id");
  addShowOptions(tail, "thinking, inputs and outputs whole; with --json every token");
  addServerOptions(tail);
  tail.addHelpText(
    "after",
    `\nExamples:\n  runwire tail run_01HZ7K3M000000000000000000\n  runwire tail run_01HZ7K3M000000000000000000 --json | grep tool.end\n${codesHelp}`,
  );
  tail.action((run_id: string, flags: WatchFlags) =>
    reach(flags, async (endpoint) => {
      checkShowFlags(flags);
      // Following waits for a server for ever; one that is not there at the start is more likely a wrong address.
      await gateway(endpoint).getRun(run_id);
      await show(endpoint, run_id, flags);
    }),
  );
}

function newRunOf(prompt: string, flags: RunFlags): NewRun {
  const { agent, adaptive, model, fallbackModels, budget, plan, approvals, session, tools } = flags;
  if (budget !== undefined && !(Number(budget) > 0 && Number.isFinite(Number(budget))))
    throw new Error(`--budget: ${JSON.stringify(budget)} is not possible; it takes an amount such as 0.50`);
  if (adaptive && agent !== "got") throw new Error("--adaptive is how a graph grows; add --agent got");
  return {
    prompt,
    ...(agent === undefined ? {} : { agent }),
    ...(adaptive === undefined ? {} : { got_adaptive: adaptive }),
    ...(fallbackModels === undefined
      ? {}
      : { fallback_models: fallbackModels.split(",").map((name) => name.trim()) }),
    ...(budget === undefined ? {} : { budget_usd: Number(budget) }),
    ...(model === undefined ? {} : { model }),
    ...(plan === undefined ? {} : { planning_gate: plan }),
    ...(approvals === undefined ? {} : { approvals }),
    ...(tools === undefined ? {} : { tools: tools.split(",").map((name) => name.trim()) }),
    ...(session === undefined ? {} : { session_id: session }),
  };
}

/** Sets the exit code by how the run, or the watching, ended. */
async function show(endpoint: Endpoint, run_id: string, flags: WatchFlags): Promise<void> {
  const { json = false, full = false, children = "show" } = flags;
  const { signal, interrupt } = leaving();
  try {
    const end = json
      ? await followWire(endpoint, run_id, { dialect: dialectOf(flags.dialect), full, signal }, onStdout)
      : await watch(endpoint, run_id, { full, children, signal, interrupt });
    process.exitCode = end === null ? 1 : exitCodes[end];
  } catch (error) {
    if (!signal.aborted) throw error;
    const to = sameServer(flags);
    process.stderr.write(
      `Left; the run goes on.\n  watch it: runwire tail ${run_id}${to}\n  end it:   runwire abort ${run_id}${to}\n`,
    );
  }
}

const onStdout = { lines: (text: string): void => void process.stdout.write(text) };
