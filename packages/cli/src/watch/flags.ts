// How a run is shown, for the commands that show one.

import { type Command, Option } from "commander";
import { dialectOption } from "../wires/dialect-flags.js";

export interface ShowFlags {
  readonly json?: boolean;
  readonly dialect?: string;
  readonly full?: boolean;
  readonly children?: "show" | "hide";
}

/** `full` says what `--full` shows. */
export function addShowOptions(command: Command, full: string): void {
  command
    .option("--full", full)
    .addOption(
      new Option("--children <how>", "whether what children do is shown")
        .choices(["show", "hide"])
        .default("show"),
    )
    .option("--json", "the wire instead, one object a line")
    .addOption(dialectOption("--dialect <name>", "how the wire is said, with --json (default runwire)"));
}

export function checkShowFlags({ dialect, json }: ShowFlags): void {
  if (dialect !== undefined && !json) throw new Error("--dialect is how --json is said; add --json");
}
