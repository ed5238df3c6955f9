// What a stream begins with for one connection: the read model at a point, and how the stream was recovered. These
// messages stand between two numbers, so they carry the number of the message before them.

import type { Message, Opening } from "../../dialect.js";
import type { Facts } from "../../events.js";
import { isObject } from "../../parse.js";
import type { RunState } from "../../state.js";
import type { Task } from "../../tasks.js";
import type { Part, Transcript } from "../../transcript.js";
import { envelope } from "./encode.js";
import { inputRef, outputPreview, statusWords } from "./rows.js";
import { contextOf, endOfTurn, type RuntimeState } from "./state.js";
import { runtimeSchemaVersion } from "./types.js";

export function open(known: RuntimeState, opening: Opening): readonly Message[] {
  const session = opening.how === "snapshot" ? undefined : opening.session_id;
  const state = known.session === null && session !== undefined ? { ...known, session } : known;
  const timestamp = opening.now ?? state.ts;
  if (timestamp === null) return [];
  const run_id = opening.how === "snapshot" ? opening.transcript.run_id : opening.run_id;
  const said = (type: string, payload: Facts): Message => {
    const bare = { type, child_id: null, scope: {}, members: {}, payload };
    // A client that comes back finds the same number, and other things to be told.
    const eventId = `${run_id}:${type}:${state.last}:${timestamp}`;
    const message = envelope(state, run_id, bare, { eventId, timestamp, sequence: state.last });
    return { id: String(state.last), data: JSON.stringify(message) };
  };
  if (opening.how !== "snapshot") {
    const recovery = { mode: "replay", reason: "cursor_unusable" };
    return opening.how === "reset" ? [said("snapshot.updated", { recovery })] : [];
  }
  const { heard = state.last } = opening;
  const gap = heard < state.last ? { gapFrom: heard + 1, gapTo: state.last } : {};
  const recovery = { mode: "snapshot", reason: "requested", ...gap };
  const updated = said("snapshot.updated", { recovery, snapshot: snapshotOf(state, opening.transcript) });
  return heard < state.last ? [updated, said("snapshot.repaired", { recovery })] : [updated];
}

/** The read model that a transcript amounts to: one thread with one turn. */
export function snapshotOf(state: RuntimeState, t: Transcript): Facts {
  const sessionId = state.session ?? t.run_id;
  const context = contextOf(state, t.run_id);
  const turnId = context.turn ?? t.run_id;
  const runs = [t, ...Object.values(t.children).map(({ transcript }) => transcript)];
  const status = threadStatus(t.state);
  const ended = endOfTurn(context);
  const turn = ended === undefined ? turnStatus(t.state) : { status: ended };
  return {
    schemaVersion: runtimeSchemaVersion,
    sessionId,
    streamId: t.run_id,
    lastSequence: state.last,
    tasks: Object.values(t.tasks).map(taskOf),
    threads: [
      {
        threadId: state.thread ?? sessionId,
        ...status,
        ...(t.title === null ? {} : { title: t.title }),
        activeTurnId: turnId,
        turns: [{ turnId, ...turn, runId: t.run_id, items: itemsOf(t) }],
        actions: runs.flatMap((run) => [...actionsOf(run, t), ...planActions(run, t)]),
        toolCalls: runs.flatMap((run) => toolCallsOf(run, t)),
        processes: runs.flatMap((run) => processesOf(state, run, t)),
        incidents: t.state === "error" ? [{ type: "run.failed", reason: t.reason }] : [],
        subagents: Object.entries(t.children).map(([subagentId, { parent_id, transcript }]) => ({
          subagentId,
          parentRunId: parent_id,
          ...turnStatus(transcript.state),
          items: itemsOf(transcript),
        })),
        usage: t.usage,
      },
    ],
  };
}

function taskOf(task: Task): Facts {
  const { task_id, run_id, parent_task_id, root_task_id, status, attempts } = task;
  return {
    taskId: task_id,
    status,
    runId: run_id,
    ...(parent_task_id === undefined ? {} : { parentTaskId: parent_task_id }),
    ...(root_task_id === undefined ? {} : { rootTaskId: root_task_id }),
    attempts: attempts.map(({ attempt_id, reason, started_at, ended_at, ...attempt }, i) => ({
      runId: attempt_id,
      attemptId: attempt_id,
      attemptCount: i + 1,
      ...attempt,
      ...(started_at === undefined ? {} : { startedAt: started_at }),
      ...(ended_at === undefined ? {} : { endedAt: ended_at }),
      ...(reason === undefined ? {} : { lastError: reason }),
    })),
  };
}

/** Threads have fewer words than runs: what they cannot say is the phase. */
function threadStatus(state: RunState | null): Facts {
  if (state === null) return { status: "unknown" };
  const { status, phase } = statusWords[state];
  if (status === "preparing") return { status: "running", phase };
  if (status === "waiting_permission" || status === "paused")
    return { status: "blocked", phase: phase ?? status };
  return statusWords[state];
}

function turnStatus(state: RunState | null): Facts {
  return state === null ? { status: "unknown" } : statusWords[state];
}

function itemsOf(t: Transcript): readonly Facts[] {
  const said = t.parts.flatMap((part) => itemsOfPart(t, part));
  return [
    ...said,
    ...t.settled.map(({ text, message_id }) => ({
      itemType: "agent_message",
      status: "completed",
      ...(message_id == null ? {} : { itemId: message_id }),
      text,
    })),
  ];
}

function itemsOfPart(t: Transcript, part: Part): readonly Facts[] {
  switch (part.kind) {
    case "block":
      return [
        ...(part.reasoning === "" ? [] : [{ itemType: "reasoning", text: part.reasoning }]),
        ...(part.text === "" ? [] : [{ itemType: "agent_message", status: "streaming", text: part.text }]),
      ];
    case "tool":
      return [{ itemType: "tool_call", toolCallId: part.call_id }];
    case "plan":
      return t.plan === null ? [] : [{ itemType: "todo", itemId: part.plan_id, plan: t.plan }];
    default:
      return [];
  }
}

/** Those that run, as far as they end with a call: what has ended is told by its call. */
function processesOf(state: RuntimeState, run: Transcript, root: Transcript): readonly Facts[] {
  return Object.entries(contextOf(state, run.run_id).processes).map(([toolCallId, processId]) => ({
    processId,
    toolCallId,
    status: "running",
    ...byOf(run, root),
  }));
}

function actionsOf(run: Transcript, root: Transcript): readonly Facts[] {
  const whose = byOf(run, root);
  const approvals = Object.entries(run.approvals).map(([actionId, { asked, status, answer }]) => ({
    actionId,
    actionType: "approval",
    status: status === "pending" ? "required" : "resolved",
    ...whose,
    ...(asked.call_id == null ? {} : { toolCallId: asked.call_id }),
    ...(status === "pending" ? callAsked(asked) : {}),
    ...(asked.expires_at == null ? {} : { expiresAt: asked.expires_at }),
    ...(answer === undefined ? {} : { decision: answer.decision }),
  }));
  const questions = Object.entries(run.clarifications).map(([actionId, { asked, status, answer }]) => ({
    actionId,
    actionType: "clarify",
    status: status === "pending" ? "required" : "resolved",
    ...whose,
    prompt: asked.question,
    ...(asked.expires_at == null ? {} : { expiresAt: asked.expires_at }),
    ...(answer === undefined ? {} : { answer: answer.answer ?? null }),
  }));
  return [...approvals, ...questions];
}

/** What somebody is to allow: the call itself is told of only when it starts. */
function callAsked({ tool, input, spilled }: Facts): Facts {
  return {
    ...(typeof tool === "string" ? { toolName: tool } : {}),
    ...(input === undefined ? {} : { safeArgs: input }),
    ...(spilled === undefined ? {} : { spilled, ...inputRef({ spilled }) }),
  };
}

/** A plan is an action for as long as the run waits for it; whoever knows it as one is told when it no longer does. */
function planActions(run: Transcript, root: Transcript): readonly Facts[] {
  const waiting = run.state === "awaiting_approval" ? run.plan?.id : undefined;
  const plans = new Set(run.parts.flatMap((part) => (part.kind === "plan" ? [part.plan_id] : [])));
  return [...plans].map((actionId) => ({
    actionId,
    actionType: "plan_approval",
    status: actionId === waiting ? "required" : "resolved",
    ...byOf(run, root),
  }));
}

function toolCallsOf(run: Transcript, root: Transcript): readonly Facts[] {
  return Object.values(run.tools).map((call) => {
    const { call_id, tool, status, input, output, error, blob_ref, duration_ms, spilled } = call;
    return {
      toolCallId: call_id,
      toolName: tool,
      status: callStatus[status],
      ...byOf(run, root),
      ...(input === undefined ? {} : { safeArgs: input }),
      ...(output === undefined ? {} : { output }),
      ...(isObject(error) ? { error } : {}),
      ...(blob_ref === undefined ? {} : { output_ref: blob_ref }),
      ...(duration_ms === undefined ? {} : { durationMs: duration_ms }),
      ...(spilled === undefined ? {} : { spilled, ...inputRef({ spilled }), ...outputPreview({ spilled }) }),
    };
  });
}

const callStatus = {
  writing: "preparing",
  called: "pending",
  running: "running",
  ok: "completed",
  failed: "failed",
} as const;

function byOf(run: Transcript, root: Transcript): Facts {
  return run === root ? {} : { subagentId: run.run_id, childId: run.run_id };
}
