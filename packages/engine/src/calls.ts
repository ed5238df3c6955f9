// The calls of an answer. Those that have not begun are begun; of those that a crash cut off, a read-only one is run
// again under its call, and any other is reported as interrupted: what it did outside is unknown.
//
//   permission ─▶ pre_tool_use ─▶ sandbox, tool.start ─▶ run-tool.ts ─▶ post_tool_use, post_tool_failure ─▶ tool.end

import type { Draft, Facts } from "@runwire/protocol";
import { approve, notKept } from "./approve.js";
import { watchFiles } from "./artifacts/watch.js";
import { type CallWork, unreadable } from "./call-work.js";
import { fileChangesHook } from "./hooks/file-changes.js";
import type { Hook, HookPoint } from "./hooks/hook.js";
import { type Hooked, runHooks } from "./hooks/run-hooks.js";
import type { Loop } from "./loop.js";
import { lost } from "./opened.js";
import { permissionFact } from "./permission.js";
import { failed, failureOf, runTool } from "./run-tool.js";
import { appliedSandbox } from "./sandbox.js";
import { atOnce, mayBegin } from "./side-by-side.js";
import { type Telling, telling } from "./telling.js";
import type { Tool } from "./tool.js";
import type { Work } from "./work.js";

export async function runCalls(loop: Loop, work: Work): Promise<void> {
  const waiting = work.calls.filter(({ status }) => status !== "ended");
  await atOnce(waiting, (call) => runCall(loop, call));
}

/** A call that is being run. */
interface Running {
  readonly loop: Loop;
  readonly call: CallWork;
  readonly tool: Tool;
  readonly told: Telling;
  readonly signal: AbortSignal;
}

async function runCall(loop: Loop, call: CallWork): Promise<void> {
  const { log, box } = loop;
  const signal = loop.working();
  if (signal.aborted) return;
  const told = telling(log);
  let tool: Tool;
  try {
    tool = box.find(call.tool);
  } catch (error) {
    // It was there when the call began, as the tools of a server that is away now.
    if (call.status === "running") return cutOff(call, told);
    told.add(...lost(call.call_id, call.open, "lost"), ...notGiven(loop, call));
    await told.write(endOf(call, failureOf(error)));
    return;
  }
  const { call_id, status, open, redacted } = call;
  if (status === "running" && (redacted || tool.effect !== "read-only")) return cutOff(call, told);
  // Its hooks look again, if they still come to it.
  told.add(...lost(call_id, open, "lost"));
  if (redacted) return told.write(endOf(call, notWhole(call)));
  const given: Running = { loop, call, tool, told, signal };
  if (status === "running") await finish(given, loop.hooks);
  else await beginAndFinish(given);
}

function notWhole({ input }: CallWork): Facts {
  return input === unreadable
    ? failed("invalid-input", "The tool was not run: its input could not be read as a JSON object.")
    : failed("redacted", `The tool was not run: ${notKept}.`);
}

/** Nobody knows what it has done. */
function cutOff(call: CallWork, told: Telling): Promise<void> {
  told.add(...lost(call.call_id, call.open, "lost"));
  const error = {
    code: "KAI-RUN-TOOL-0001",
    message: "The server stopped, or could not write, while it ran.",
  };
  return told.write(endOf(call, { ok: false, error }));
}

async function beginAndFinish(running: Running): Promise<void> {
  const { loop, call, tool } = running;
  const input = await permitted(running);
  if (input === undefined) return;
  const granted = { ...running, call: { ...call, input: input.input } };
  const { workspace, record } = loop;
  // What only reads changes nothing. The others are looked at before they start, so that nothing comes between the
  // start and the tool.
  const watch = tool.effect === "read-only" ? null : await watchFiles(workspace);
  try {
    if (!(await started(granted, input.approved))) return;
    const place = { call_id: call.call_id, root_id: record.root_id, workspace };
    await finish(granted, [...(watch === null ? [] : [fileChangesHook(watch, place)]), ...loop.hooks]);
  } finally {
    watch?.close();
  }
}

/** Asks whoever has to be asked. Undefined where it is not to be run. */
async function permitted(
  running: Running,
): Promise<{ readonly input: unknown; readonly approved: Facts | undefined } | undefined> {
  const { loop, call, tool, told, signal } = running;
  const refuse = (kind: string, why: string): Promise<void> => told.write(endOf(call, failed(kind, why)));
  if (!(await mayBegin(loop.log, signal))) return undefined;
  const verdict = await approve(loop, call, tool, signal, told);
  if (!(await mayBegin(loop.log, signal))) return undefined;
  if (verdict.kind === "denied") {
    await refuse("denied", `The tool was not run: ${verdict.why}.`);
    return undefined;
  }
  // After whoever may have edited the input: nobody's runs that the hooks have not seen.
  const { input, refusal } = await hooked(running, loop.hooks, "pre_tool_use", { input: verdict.input });
  if (!(await mayBegin(loop.log, signal))) return undefined;
  if (refusal === null) return { input, approved: verdict.approved };
  const { kind, why } = refusal;
  await refuse(kind, kind === "denied" ? `The tool was not run: ${sentence(why)}` : why);
  return undefined;
}

async function started(
  { loop, call, tool, told, signal }: Running,
  approved: Facts | undefined,
): Promise<boolean> {
  if (!(await mayBegin(loop.log, signal))) return false;
  const { call_id, input } = call;
  const more: Facts = {
    ...(tool.skill_id === undefined ? {} : { skill_id: tool.skill_id }),
    ...(approved === undefined ? {} : { approved }),
  };
  told.add(...appliedSandbox(call_id, tool));
  await told.write({ type: "tool.start", payload: { call_id, tool: tool.name, input, ...more } } as Draft);
  return true;
}

/** Runs it to its end. */
async function finish(running: Running, hooks: readonly Hook[]): Promise<void> {
  const { loop, call, tool, told, signal } = running;
  const beganMs = loop.host.clock.monotonic();
  const outcome = await runTool(loop, tool, call, signal, told);
  const timed: Facts = { ...outcome, duration_ms: Math.round(loop.host.clock.monotonic() - beganMs) };
  const end = signal.aborted ? timed : await looked(running, hooks, timed);
  if (!signal.aborted) await told.write(endOf(call, end));
  // A run that was ended or redirected meanwhile has closed its calls itself.
  else if (loop.stopping.aborted && end.ok === true) await endedLast(running, end);
}

/** What a call came to, after the hooks have looked at it. */
async function looked(running: Running, hooks: readonly Hook[], end: Facts): Promise<Facts> {
  const { input } = running.call;
  const { ok, output, error, ...rest } = end;
  const { refusal } = ok
    ? await hooked(running, hooks, "post_tool_use", { input, output })
    : await hooked(running, hooks, "post_tool_failure", { input, error: error as Facts });
  if (refusal === null) return end;
  if (!ok) {
    const told = error as Facts;
    return { ...rest, ok, error: { ...told, message: `${told.message}\n${sentence(refusal.why)}` } };
  }
  const why = `The tool was run, but its result is withheld: ${sentence(refusal.why)}`;
  return { ...rest, ...failed(refusal.kind, why) };
}

function hooked(
  { loop, call, tool, told, signal }: Running,
  hooks: readonly Hook[],
  point: HookPoint,
  of: { readonly input: unknown; readonly output?: unknown; readonly error?: Facts },
): Promise<Hooked> {
  const { run_id } = loop.run;
  const { workspace, host } = loop;
  const { call_id } = call;
  const { monotonic } = host.clock;
  return runHooks(hooks, { point, run_id, call_id, tool, workspace, ...of }, { told, monotonic, signal });
}

/** What a tool has finished while its server leaves is not told as interrupted after the next start. */
async function endedLast({ loop, call, tool, told }: Running, end: Facts): Promise<void> {
  const { host, run, hooks } = loop;
  // Nobody is shown what a hook might have withheld.
  if (hooks.some((hook) => hook.takesTime && hook.points.includes("post_tool_use") && hook.appliesTo(tool)))
    return;
  // Where it comes too late, nobody knows any more than after a crash.
  await host.writer.append(run, told.take(endOf(call, end))).catch(() => {});
}

/** A tool that is there, and that this run may not use. */
function notGiven({ tools, given }: Loop, { call_id, tool: name }: CallWork): readonly Draft[] {
  const tool = tools().find((known) => known.name === name);
  if (tool === undefined) return [];
  return [permissionFact(call_id, tool, given.approvals, { policy: "denied", reason: "tool-list" })];
}

function endOf({ call_id }: CallWork, payload: Facts): Draft {
  return { type: "tool.end", payload: { call_id, ...payload } as never };
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
