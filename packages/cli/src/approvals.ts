// `runwire approvals`: what people have approved for more than one call, and how to take it back.

import { gateway, type StandingApproval } from "@runwire/client";
import type { Command } from "commander";
import { addServerOptions, reach, type ServerFlags } from "./server-flags.js";
import { listing, writeFound } from "./terminal.js";
import { oneLine } from "./watch/harmless.js";
import { ageWords } from "./watch/words.js";

interface ApprovalsFlags extends ServerFlags {
  readonly session?: string;
  readonly takeBack?: string;
  readonly json?: boolean;
}

const columns = ["TOOL", "FOR", "SINCE", "RUN"];

export function addApprovals(program: Command): void {
  const approvals = program
    .command("approvals")
    .description("list tools that are approved for more than one call, or take one back")
    .option("--session <id>", "those of this session too; with --take-back, that one")
    .option("--take-back <tool>", "ask again from its next call on")
    .option("--json", "as the server has them, one object a line");
  addServerOptions(approvals).addHelpText(
    "after",
    "\nExamples:\n  runwire approvals\n  runwire approvals --take-back shell",
  );
  approvals.action((flags: ApprovalsFlags) =>
    reach(flags, async (endpoint) => {
      const { session, takeBack } = flags;
      if (takeBack !== undefined) {
        await gateway(endpoint).takeBackApproval(takeBack, session);
        process.stdout.write(`${oneLine(takeBack)} is asked about again\n`);
        return;
      }
      const found = (await gateway(endpoint).approvals(session)).approvals;
      const none = "no tool is approved for more than one call";
      writeFound(found, flags, none, () => listOf(found, Date.now()));
    }),
  );
}

function listOf(found: readonly StandingApproval[], nowMs: number): string {
  const rows = found.map(({ tool, session_id, answered_at, run_id }) => [
    oneLine(tool),
    session_id === null ? "every run" : oneLine(session_id),
    ageWords(nowMs - Date.parse(answered_at)),
    run_id,
  ]);
  return listing(columns, rows);
}
