// `runwire inbox`: what waits for a person, and the command that answers it.

import { gateway } from "@runwire/client";
import type { InboxItem } from "@runwire/protocol";
import type { Command } from "commander";
import { addServerOptions, reach, type ServerFlags, sameServer } from "./server-flags.js";
import { listing } from "./terminal.js";
import { oneLine } from "./watch/harmless.js";
import { ageWords, inputWords } from "./watch/words.js";

const columns = ["RUN", "WAITS FOR", "SINCE", "ANSWER WITH"];
const aboutCharsMax = 60;

export function addInbox(program: Command): void {
  const inbox = program
    .command("inbox")
    .description("list what waits for a person, oldest first")
    .option("--json", "as the server has it, one object a line");
  addServerOptions(inbox).addHelpText("after", "\nExample:\n  runwire inbox");
  inbox.action((flags: ServerFlags & { readonly json?: boolean }) =>
    reach(flags, async (endpoint) => {
      const { items, total } = await gateway(endpoint).inbox();
      if (flags.json) for (const item of items) process.stdout.write(`${JSON.stringify(item)}\n`);
      else if (items.length > 0) process.stdout.write(`${listOf(items, Date.now(), sameServer(flags))}\n`);
      if (total === 0) process.stderr.write("nothing waits for a person\n");
      if (total > items.length) process.stderr.write(`and ${total - items.length} more\n`);
    }),
  );
}

function listOf(items: readonly InboxItem[], nowMs: number, to: string): string {
  const rows = items.map((item) => [
    item.run_id,
    aboutOf(item),
    ageWords(nowMs - Date.parse(item.asked_at)),
    `${answerTo(item)}${to}`,
  ]);
  return listing(columns, rows);
}

function aboutOf({ kind, tool, input_preview, question, title, prompt_preview }: InboxItem): string {
  const words = (value: unknown): string => inputWords(value, aboutCharsMax);
  switch (kind) {
    case "approval":
      return `approval: ${words(tool)} ${words(input_preview)}`.trim();
    case "clarify":
      return `answer: ${words(question)}`;
    case "plan":
      return `plan: ${words(title ?? prompt_preview)}`.replace(/: $/, "");
  }
}

function answerTo({ kind, run_id, request_id }: InboxItem): string {
  if (kind === "clarify") return `runwire answer ${run_id} ${oneLine(request_id ?? "")} TEXT`;
  return `runwire approve ${run_id}${kind === "plan" ? "" : ` ${oneLine(request_id ?? "")}`}`;
}
