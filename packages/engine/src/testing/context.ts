// A call to a tool, as the agent makes it, in a workspace of its own.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ProcessBegun, type ProcessEnd, type Tool, type ToolContext, ToolFailure } from "../tool.js";

export interface TestContext extends ToolContext {
  /** The folder that the workspace is in: nothing of it but the workspace is a tool's business. */
  readonly outside: string;
  /** What was said so far. */
  readonly said: readonly string[];
  /** Processes that were told of, each with its end. */
  readonly processes: readonly (ProcessBegun & { readonly end: ProcessEnd | null })[];
  abort(): void;
  remove(): void;
}

export function testContext(): TestContext {
  const removed = mkdtempSync(join(tmpdir(), "runwire-tools-"));
  // So deep that a path which climbs out by mistake still ends in a folder of the test.
  const outside = join(removed, ..."123456789");
  const workspace = join(outside, "workspace");
  mkdirSync(workspace, { recursive: true });
  const aborting = new AbortController();
  const said: string[] = [];
  const processes: (ProcessBegun & { end: ProcessEnd | null })[] = [];
  return {
    tenant: "default",
    run_id: "run_1",
    call_id: "call_1",
    signal: aborting.signal,
    workspace,
    outside,
    said,
    processes,
    say: (text) => void said.push(text),
    began(process) {
      const told = { ...process, end: null as ProcessEnd | null };
      processes.push(told);
      return (end) => {
        told.end = end;
      };
    },
    abort: () => aborting.abort(),
    remove: () => rmSync(removed, { recursive: true, force: true }),
  };
}

/** What a tool gives, or the failure it ends with. Anything that is not a ToolFailure is thrown on. */
export async function outcomeOf(tool: Tool, input: unknown, context: ToolContext): Promise<Outcome> {
  try {
    const output = (await tool.run(input, context)) as { readonly [member: string]: unknown };
    return { output, kind: null, message: "" };
  } catch (error) {
    if (!(error instanceof ToolFailure)) throw error;
    return { output: {}, kind: error.kind, message: error.message };
  }
}

export interface Outcome {
  readonly output: { readonly [member: string]: unknown };
  /** Of the failure; null where there is none. */
  readonly kind: string | null;
  readonly message: string;
}
