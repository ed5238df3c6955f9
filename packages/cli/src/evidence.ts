// `runwire evidence` and `review`: what a run can be shown to have done, and what people decided about it.

import { gateway } from "@runwire/client";
import { beginningOf, type Decision, type EvidencePack, type Facts, type Review } from "@runwire/protocol";
import type { Command } from "commander";
import { addServerOptions, reach, type ServerFlags } from "./server-flags.js";
import { listing } from "./terminal.js";
import { oneLine } from "./watch/harmless.js";

interface EvidenceFlags extends ServerFlags {
  readonly json?: boolean;
}

const run = "run_01HZ7K3M000000000000000000";
const shownCharsMax = 100;

export function addEvidence(program: Command): void {
  const evidence = program
    .command("evidence")
    .description("show what a run can be shown to have done: its log's digest, attempts, failures, costs")
    .argument("<run>", "its id")
    .option("--json", "the pack, as the server has it");
  addServerOptions(evidence).addHelpText("after", `\nExample:\n  runwire evidence ${run}`);
  evidence.action((run_id: string, flags: EvidenceFlags) =>
    reach(flags, async (endpoint) => {
      const pack = await gateway(endpoint).evidence(run_id);
      process.stdout.write(flags.json ? `${JSON.stringify(pack)}\n` : `${packText(pack)}\n`);
    }),
  );
  const review = program
    .command("review")
    .description("show what people have decided about a run, in order")
    .argument("<run>", "its id")
    .option("--json", "as the server has it");
  addServerOptions(review).addHelpText("after", `\nExample:\n  runwire review ${run}`);
  review.action((run_id: string, flags: EvidenceFlags) =>
    reach(flags, async (endpoint) => {
      const found = await gateway(endpoint).review(run_id);
      if (flags.json) process.stdout.write(`${JSON.stringify(found)}\n`);
      else if (found.decisions.length > 0) process.stdout.write(`${decisionsText(found)}\n`);
      if (found.decisions_total === 0) process.stderr.write("nobody has decided anything about it\n");
      for (const { kind, id } of found.waiting)
        process.stderr.write(`${oneLine(`${kind} ${id}`)} waits for an answer\n`);
    }),
  );
}

function packText({ run_id, state, log, refs, signals, totals, cost, tasks }: EvidencePack): string {
  const { usd, known } = cost as { readonly usd: number | null; readonly known: boolean };
  const attempts = (tasks as readonly { readonly run_id: string; readonly attempts: readonly unknown[] }[])
    .filter((task) => task.run_id === run_id)
    .reduce((sum, task) => sum + task.attempts.length, 0);
  const rows = [
    ["run", run_id],
    ["state", state ?? "unknown"],
    ["attempts", String(attempts)],
    ["cost", usd === null ? "unknown" : `$${usd}${known ? "" : " or more"}`],
    ["log", `${log.events} events, ${log.bytes} bytes, ${log.view} view`],
    ["sha256", log.sha256],
    ...Object.entries(totals as Facts).map(([name, count]) => [name.replaceAll("_", " "), String(count)]),
    ...Object.entries(signals).map(([name, signal]) => [`signal ${name.replaceAll("_", " ")}`, signal]),
    ...Object.entries(refs).map(([name, ref]) => [name.replaceAll("_", " "), String(ref)]),
  ];
  return list(["WHAT", "IS"], rows);
}

function decisionsText({ run_id, decisions, decisions_total }: Review): string {
  const rows = decisions.map((decision) => rowOf(decision, run_id));
  const text = list(["AT", "WHO", "WHAT", "DECISION", "ABOUT"], rows);
  const more = decisions_total - decisions.length;
  return more === 0 ? text : `${text}\nand ${more} more`;
}

function rowOf({ at, who, kind, decision, ...about }: Decision, reviewed: string): readonly string[] {
  const child = about.run_id === reviewed ? null : about.run_id;
  const { tool, question, answer, text, instruction, reason, edited, covered_by } = about;
  const how = [edited === true ? "edited" : null, covered_by === undefined ? null : "covered"];
  const words = [child, tool, ...how, question, answer, text, instruction, reason];
  const told = words.filter((word) => typeof word === "string").join(" · ");
  const shown = told.length > shownCharsMax ? `${beginningOf(told, shownCharsMax)}…` : told;
  return [at, who, kind, decision, shown];
}

function list(names: readonly string[], rows: readonly (readonly string[])[]): string {
  return listing(
    names,
    rows.map((row) => row.map(oneLine)),
  );
}
