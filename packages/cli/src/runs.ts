// `runwire runs`: which runs there are, newest first.

import { gateway, type RunRecord } from "@runwire/client";
import { isRunState, type RunState, runStates } from "@runwire/protocol";
import { type Command, Option } from "commander";
import { addServerOptions, reach, type ServerFlags } from "./server-flags.js";
import { type Colour, listing, writeFound } from "./terminal.js";
import { oneLine } from "./watch/harmless.js";
import { layOut } from "./watch/line.js";
import { ageWords } from "./watch/words.js";

interface RunsFlags extends ServerFlags {
  readonly state?: string;
  readonly session?: string;
  readonly limit: string;
  readonly json?: boolean;
}

const columns = ["ID", "STATE", "AGE", "TITLE", "AGENT"];
const runsMax = 1000;
const pageMax = 100;

export function addRuns(program: Command): void {
  const runs = program
    .command("runs")
    .description("list runs, newest first")
    .addOption(new Option("--state <state>", "only those in this state").choices(runStates))
    .option("--session <id>", "only those of one session")
    .option("--limit <count>", `how many, up to ${runsMax}`, "20")
    .option("--json", "as the server has them, one object a line");
  addServerOptions(runs);
  runs.addHelpText(
    "after",
    "\nExample:\n  runwire runs --state awaiting_approval\n\nThese wait for their plan; `runwire inbox` lists all that waits for a person.",
  );
  runs.action((flags: RunsFlags) =>
    reach(flags, async (endpoint) => {
      const found: RunRecord[] = [];
      const count = countOf(flags.limit);
      let cursor: string | undefined;
      do {
        const limit = Math.min(pageMax, count - found.length);
        const page = await gateway(endpoint).listRuns({
          ...queryOf(flags),
          limit,
          ...(cursor ? { cursor } : {}),
        });
        found.push(...page.runs);
        cursor = page.next ?? undefined;
      } while (cursor !== undefined && found.length < count);
      const none =
        flags.state === "awaiting_approval"
          ? "no run waits for its plan; `runwire inbox` lists what else waits for a person"
          : "there are no such runs; `runwire run` starts one";
      writeFound(found, flags, none, () => runList(found, Date.now()));
    }),
  );
}

function queryOf({ state, session }: RunsFlags): { readonly state?: RunState; readonly session_id?: string } {
  return {
    ...(isRunState(state) ? { state } : {}),
    ...(session === undefined ? {} : { session_id: session }),
  };
}

function countOf(text: string): number {
  const count = Number(text);
  if (/^[0-9]+$/.test(text) && count >= 1 && count <= runsMax) return count;
  throw new Error(`--limit: ${JSON.stringify(text)} is not possible; it takes 1 to ${runsMax}`);
}

function runList(runs: readonly RunRecord[], nowMs: number): string {
  const rows = runs.map(({ run_id, state, created_at, title, prompt_preview, agent }) => [
    run_id,
    state,
    ageWords(nowMs - Date.parse(created_at)),
    // A run has no title before its end; a server of before has no preview.
    oneLine(title ?? prompt_preview ?? ""),
    agent ?? "",
  ]);
  return listing(columns, rows, { colourOf: (row) => colourOf(runs[row]?.state), fit: cut });
}

function cut(text: string): string {
  const columns = process.stdout.columns ?? 80;
  return layOut({ gutter: [], spans: [{ text }], fit: "cut", hang: 0 }, { columns, colour: false })[0] ?? "";
}

function colourOf(state: RunState | undefined): Colour | undefined {
  if (state === "error") return "red";
  if (state === "awaiting_approval" || state === "paused") return "yellow";
  return state === "done" || state === "aborted" ? "grey" : undefined;
}
