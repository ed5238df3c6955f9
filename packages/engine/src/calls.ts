// The calls of an answer. Those that have not begun are begun; of those that a crash cut off, a read-only one is run
// again under its call, and any other is reported as interrupted: what it did outside is unknown.

import type { Draft, Facts } from "@runwire/protocol";
import { approve, clarify, clarifyTool } from "./asks.js";
import { limits } from "./limits.js";
import type { Loop } from "./loop.js";
import { spawnTool, waitForChild } from "./spawn.js";
import { type Tool, ToolFailure } from "./tool.js";
import type { CallWork, Work } from "./work.js";

export async function runCalls(loop: Loop, work: Work): Promise<void> {
  const waiting = work.calls.filter(({ status }) => status !== "ended");
  const next = waiting[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (const call of next) await runCall(loop, call);
  };
  await Promise.all(Array.from({ length: limits.callsAtOnceMax }, worker));
}

async function runCall(loop: Loop, call: CallWork): Promise<void> {
  const { log, box } = loop;
  const signal = loop.working();
  if (signal.aborted) return;
  const { call_id } = call;
  const ended = (payload: Facts): Promise<void> =>
    log.write({ type: "tool.end", payload: { call_id, ...payload } as never });
  let tool: Tool;
  try {
    tool = box.find(call.tool);
  } catch (error) {
    await ended(failureOf(error));
    return;
  }
  if (call.status === "running" && tool.effect !== "read-only") {
    await ended({
      ok: false,
      error: { code: "KAI-RUN-TOOL-0001", message: "The server stopped while it ran." },
    });
    return;
  }
  let { input } = call;
  if (call.status === "called") {
    const verdict = await approve(loop, call, tool);
    if (signal.aborted) return;
    if (verdict.kind === "denied") {
      await ended(failed("denied", `The tool was not run: ${verdict.why}.`));
      return;
    }
    ({ input } = verdict);
    const skill: Facts = tool.skill_id === undefined ? {} : { skill_id: tool.skill_id };
    await log.write({ type: "tool.start", payload: { call_id, tool: tool.name, input, ...skill } } as Draft);
  }
  const beganMs = loop.host.clock.monotonic();
  const outcome = await run(loop, tool, { ...call, input }, signal);
  // A run that was ended or redirected meanwhile has closed its calls itself.
  if (signal.aborted) return;
  await ended({ ...outcome, duration_ms: Math.round(loop.host.clock.monotonic() - beganMs) });
}

async function run(loop: Loop, tool: Tool, call: CallWork, signal: AbortSignal): Promise<Facts> {
  const { call_id, input } = call;
  const { tenant, run_id } = loop.run;
  // Said in order: each piece waits for the one before.
  let saying: Promise<void> = Promise.resolve();
  const say = (text: string): void => {
    saying = saying.then(() =>
      signal.aborted ? undefined : loop.log.write({ type: "text.delta", payload: { text, call_id } }),
    );
  };
  try {
    const output =
      tool.name === spawnTool.name
        ? await waitForChild(loop, call, signal)
        : tool.name === clarifyTool.name
          ? await clarify(loop, call)
          : await tool.run(input, { tenant, run_id, call_id, signal, workspace: loop.workspace, say });
    await saying;
    return { ok: true, output };
  } catch (error) {
    await saying.catch(() => {});
    return failureOf(error);
  }
}

function failureOf(error: unknown): Facts {
  const kind = error instanceof ToolFailure ? error.kind : "failed";
  return failed(kind, error instanceof Error ? error.message : String(error));
}

function failed(kind: string, message: string): Facts {
  return { ok: false, error: { code: "KAI-RUN-TOOL-0002", kind, message } };
}
