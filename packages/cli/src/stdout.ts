// What a command does where its stdout, or its stderr, takes no more.

import type { Command } from "commander";

/** These have more to do than to write there. */
const goingOn: ReadonlySet<string> = new Set(["ingest", "nats", "serve"]);

export function minded(program: Command): Command {
  return program.hook("preAction", (_program, command) => {
    // What is said there is said beside the work, which goes on without it.
    process.stderr.on("error", () => {});
    // Half of a check says nothing, so that one has its own way to end.
    if (command.name() === "validate") return;
    process.stdout.on("error", goingOn.has(command.name()) ? () => {} : leave);
  });
}

function leave(error: NodeJS.ErrnoException): void {
  // Whoever read it, `head` or a pager, has seen enough.
  if (error.code === "EPIPE") process.exit(0);
  const why = error.code === "ENOSPC" ? "there is no space left" : error.message;
  process.stderr.write(`runwire: stdout: ${why}\n`);
  process.exit(1);
}
