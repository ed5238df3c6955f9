// The calls of an answer. Those that have not begun are begun; of those that a crash cut off, a read-only one is run
// again under its call, and any other is reported as interrupted: what it did outside is unknown.

import type { Draft, Facts } from "@runwire/protocol";
import { approve, clarify, clarifyTool } from "./asks.js";
import { limits } from "./limits.js";
import type { Loop } from "./loop.js";
import { permissionFact } from "./permission.js";
import { appliedSandbox, violationIn } from "./sandbox.js";
import { spawnTool, waitForChild } from "./spawn.js";
import { type Telling, telling } from "./telling.js";
import { type Tool, ToolFailure } from "./tool.js";
import { soonAfter } from "./tools/until.js";
import type { CallWork, Work } from "./work.js";

export async function runCalls(loop: Loop, work: Work): Promise<void> {
  const waiting = work.calls.filter(({ status }) => status !== "ended");
  const next = waiting[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (const call of next) await runCall(loop, call);
  };
  // All are waited for, also where one fails: no tool outlives its run.
  const ends = await Promise.allSettled(Array.from({ length: limits.callsAtOnceMax }, worker));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

async function runCall(loop: Loop, call: CallWork): Promise<void> {
  const { log, box } = loop;
  const signal = loop.working();
  if (signal.aborted) return;
  const { call_id } = call;
  const told = telling(log);
  const ended = (payload: Facts): Promise<void> =>
    told.write({ type: "tool.end", payload: { call_id, ...payload } as never });
  let tool: Tool;
  try {
    tool = box.find(call.tool);
  } catch (error) {
    told.add(...notGiven(loop, call));
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
    // What has not begun when somebody pauses the run waits until they resume it.
    const mayBegin = ({ state }: Work): boolean => signal.aborted || state === "running";
    await log.until(mayBegin);
    if (signal.aborted) return;
    const verdict = await approve(loop, call, tool, signal, told);
    await log.until(mayBegin);
    if (signal.aborted) return;
    if (verdict.kind === "denied") {
      await ended(failed("denied", `The tool was not run: ${verdict.why}.`));
      return;
    }
    ({ input } = verdict);
    const { approved } = verdict;
    const more: Facts = {
      ...(tool.skill_id === undefined ? {} : { skill_id: tool.skill_id }),
      ...(approved === undefined ? {} : { approved }),
    };
    told.add(...appliedSandbox(call_id, tool));
    await told.write({ type: "tool.start", payload: { call_id, tool: tool.name, input, ...more } } as Draft);
  }
  const beganMs = loop.host.clock.monotonic();
  const outcome = await run(loop, tool, { ...call, input }, signal, told);
  const end = { ...outcome, duration_ms: Math.round(loop.host.clock.monotonic() - beganMs) };
  // A run that was ended or redirected meanwhile has closed its calls itself.
  if (!signal.aborted) await ended(end);
  else if (loop.stopping.aborted && outcome.ok === true) await endedLast(loop, call_id, end);
}

/** A tool that is there, and that this run may not use. */
function notGiven({ tools, given }: Loop, { call_id, tool: name }: CallWork): readonly Draft[] {
  const tool = tools.find((known) => known.name === name);
  if (tool === undefined) return [];
  return [permissionFact(call_id, tool, given.approvals, { policy: "denied", reason: "tool-list" })];
}

/** What a tool has finished while its server leaves is not told as interrupted after the next start. */
async function endedLast({ host, run: key }: Loop, call_id: string, end: Facts): Promise<void> {
  const draft = { type: "tool.end", payload: { call_id, ...end } } as Draft;
  // Where it comes too late, nobody knows any more than after a crash.
  await host.writer.append(key, [draft]).catch(() => {});
}

async function run(
  loop: Loop,
  tool: Tool,
  call: CallWork,
  signal: AbortSignal,
  told: Telling,
): Promise<Facts> {
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
          ? await clarify(loop, call, signal)
          : await soonAfter(
              signal,
              limits.toolGraceMs,
              tool.run(input, { tenant, run_id, call_id, signal, workspace: loop.workspace, say }),
            );
    await saying;
    return { ok: true, output };
  } catch (error) {
    await saying.catch(() => {});
    told.add(...violationIn(call_id, tool, error));
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
