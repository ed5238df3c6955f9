// What a tool says while it runs, and the processes it runs. All goes into the log in the order in which it came; what
// comes while something is on its way there goes together with the next.

import type { Draft, Facts } from "@runwire/protocol";
import type { RunLog } from "./log.js";
import { factOf } from "./telling.js";
import type { ProcessBegun, ProcessEnd, ToolContext } from "./tool.js";

export interface Spoken extends Pick<ToolContext, "say" | "began"> {
  /** Resolves when all is written, with what goes with the tool's own end. */
  over(): Promise<readonly Draft[]>;
}

export function spoken(log: RunLog, call_id: string, signal: AbortSignal, nowMs: () => number): Spoken {
  let waiting: Draft[] = [];
  let writing: Promise<void> | null = null;
  let failure: unknown;
  /** Of the last process, until something comes after it. */
  let lastEnd: readonly Draft[] = [];
  let count = 0;
  let open: string | null = null;

  function push(draft: Draft): void {
    // Whoever was called off says nothing any more.
    if (signal.aborted) return;
    waiting.push(...lastEnd, draft);
    lastEnd = [];
    writing ??= write();
  }

  async function write(): Promise<void> {
    try {
      while (waiting.length > 0 && !signal.aborted) {
        const drafts = waiting;
        waiting = [];
        await log.write(...drafts);
      }
    } catch (error) {
      failure = error;
    } finally {
      writing = null;
    }
  }

  function began({ command, cwd, pid }: ProcessBegun): (end: ProcessEnd) => void {
    count += 1;
    const process_id = `${call_id}:p${count}`;
    const beganMs = nowMs();
    const fact = (type: `process.${string}`, payload: Facts): Draft =>
      factOf(call_id, type, payload, { process_id });
    open = process_id;
    push(
      fact("process.started", { command, cwd, ...(pid === undefined ? {} : { pid }), endsWithCall: true }),
    );
    return ({ kind, ...end }) => {
      open = null;
      lastEnd = [fact(`process.${kind}`, { ...end, duration_ms: Math.round(nowMs() - beganMs) })];
    };
  }

  return {
    say(text) {
      const scope = open === null ? {} : { scope: { process_id: open } };
      push({ type: "text.delta", payload: { text, call_id }, ...scope });
    },
    began,
    async over() {
      while (writing !== null) await writing;
      if (failure !== undefined) throw failure;
      return lastEnd;
    },
  };
}
