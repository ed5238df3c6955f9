// One run, from wherever it stands to its end. Each round looks at where the log has got to and does the next thing;
// nothing is remembered between two rounds but the log. So a crash, a pause and a restart need no code of their own.

import { type Draft, RunwireError } from "@runwire/protocol";
import type { AgentHost, RunKey, RunRecord } from "@runwire/server";
import { aborter } from "./aborter.js";
import { answer } from "./answer.js";
import type { Ask } from "./call-work.js";
import { runCalls } from "./calls.js";
import { profileOf, takenUp } from "./course.js";
import { finish } from "./finish.js";
import type { GivenRun } from "./given.js";
import type { Hook } from "./hooks/hook.js";
import { openLog, type RunLog } from "./log.js";
import type { Model } from "./model.js";
import { lost } from "./opened.js";
import { propose } from "./plan.js";
import type { Router } from "./routing.js";
import type { StepCosts } from "./step-costs.js";
import { boundary } from "./steps.js";
import { endsOfNodes, liveChildrenOf } from "./strategies/got.js";
import { strategyStep } from "./strategies/step.js";
import { isAtWork } from "./strategies/strategy.js";
import type { Tool } from "./tool.js";
import { type Toolbox, toolbox } from "./tools/toolbox.js";
import { isOver, type Work } from "./work.js";

export interface LoopParts {
  readonly host: AgentHost;
  readonly run: RunKey;
  readonly record: RunRecord;
  readonly routing: Router;
  /** Those that there are now: a server that was away may have come back. */
  readonly tools: () => readonly Tool[];
  /** What looks at its calls, in order. */
  readonly hooks: readonly Hook[];
  readonly given: GivenRun;
  /** The tree's. */
  readonly workspace: string;
  /** What the steps of the tenant's last plans have cost. */
  readonly stepCosts: StepCosts;
  /** Keeps the workspace as it is; null where that cannot be. */
  readonly checkpoint: () => Promise<string | null>;
  /** Is told the last checkpoint that the log names, once the run is taken up and when it is over. */
  readonly settle: (named: string | null) => Promise<void>;
  /** Begins to write a child. */
  readonly take: (child: RunKey) => void;
  readonly newId: (prefix: "call" | "plan" | "appr" | "clar" | "msg") => string;
}

export interface Loop extends LoopParts {
  readonly log: RunLog;
  /** The one that answers now: after a fallback it is another. */
  readonly model: Model;
  /** The tools that this run may use, the same for all of a round. */
  readonly box: Toolbox;
  /** Aborts when the server leaves. */
  readonly stopping: AbortSignal;
  /** Aborts with the run, with a pause and with a redirection: for what can go on from the log. */
  readonly talking: () => AbortSignal;
  /** Aborts with the run and with a redirection: for tools, which a pause lets finish. */
  readonly working: () => AbortSignal;
}

/** Resolves when the run has ended; rejects where it cannot go on. `signal` stops without ending it. */
export async function drive(parts: LoopParts, signal: AbortSignal): Promise<void> {
  let talk = aborter();
  let toil = aborter();
  const stop = (): void => {
    talk.abort();
    toil.abort();
  };
  signal.addEventListener("abort", stop);
  const log = await openLog(parts.host, parts.run, signal, (work) => {
    if (work.state !== "running" && work.state !== "planning") talk.abort();
    if (isOver(work) || work.state === "redirecting") toil.abort();
  });
  const boxNow = (): Toolbox => toolbox({ tools: parts.tools(), allowed: parts.given.tools });
  let box = boxNow();
  const loop: Loop = {
    ...parts,
    log,
    get box() {
      return box;
    },
    get model() {
      return parts.routing.model(log.work.course);
    },
    stopping: signal,
    talking: () => talk.signal,
    working: () => toil.signal,
  };
  try {
    if (!isOver(log.work)) await takeUp(loop);
    while (!isOver(log.work)) {
      signal.throwIfAborted();
      talk = aborter();
      toil = aborter();
      box = boxNow();
      await round(loop, log.work);
    }
    await parts.settle(log.work.checkpoint_id);
  } catch (error) {
    // Somebody ended it while something was on its way into the log.
    if (!(error instanceof RunwireError) || error.code !== "KAI-RUN-ENDED-0001") throw error;
    await parts.settle((await log.until(isOver)).checkpoint_id);
  } finally {
    signal.removeEventListener("abort", stop);
    stop();
  }
}

/** Before anything is done it is said that it begins, and with which model. */
async function takeUp({ log, record, routing, given, box, settle }: Loop): Promise<void> {
  const { course } = log.work;
  const { planning_gate } = record;
  const profile = { tools: box.tools.length, approvals: given.approvals, planning_gate };
  await log.write(
    ...takenUp(course, record),
    ...(course.candidate === undefined ? [profileOf(record, profile)] : []),
    ...routing.opening(course),
  );
  // Not before: an event of which nobody knows whether it is stored may name a checkpoint that the log does not. Where
  // something is written there is no such event.
  await settle(log.work.checkpoint_id);
  // Throws where there is none.
  routing.model(log.work.course);
}

async function round(loop: Loop, work: Work): Promise<void> {
  const { log } = loop;
  switch (work.state) {
    case "paused":
    case "awaiting_approval":
      await log.until(({ state }) => state !== work.state);
      return;
    case "redirecting":
      await leaveChildren(loop, work);
      await log.write(...cutShort(work), {
        type: "run.lifecycle",
        payload: { state: "running", reason: "redirected" },
      });
      return;
    case "planning":
      if (!work.planned) await propose(loop, work);
      else await log.until(({ state }) => state !== "planning");
      return;
    default:
      break;
  }
  const { stepOver } = work;
  if (work.answer === null && stepOver !== null)
    await log.write(await boundary(loop, stepOver.kind, stepOver.calls));
  else if (work.answer === null && work.calls.length > 0) await runCalls(loop, work);
  else if (isAtWork(work)) await strategyStep(loop, work);
  else if (work.answer === null && work.finished) await finish(loop, work);
  else await answer(loop, work);
}

/** Children that nobody waits for any longer. */
async function leaveChildren({ host, run }: Loop, { calls, strategy }: Work): Promise<void> {
  const ofCalls = calls.flatMap(({ child_id, status }) =>
    child_id === null || status === "ended" ? [] : [child_id],
  );
  for (const child_id of [...ofCalls, ...liveChildrenOf(strategy)]) {
    const over: Draft = { type: "run.lifecycle", payload: { state: "aborted", reason: "parent redirected" } };
    await host.writer.append({ tenant: run.tenant, run_id: child_id }, [over]).catch((error: unknown) => {
      if (!(error instanceof RunwireError) || error.code !== "KAI-RUN-ENDED-0001") throw error;
    });
  }
}

/** Calls that another direction has made pointless, and what was asked about them. */
function cutShort({ calls, strategy }: Work): readonly Draft[] {
  const open = calls.filter(({ status }) => status !== "ended");
  const ends = open.flatMap(({ call_id, approval, question, open: begun }): readonly Draft[] => {
    const error = {
      code: "KAI-RUN-TOOL-0001",
      message: "The run was redirected before the tool was done.",
    };
    const before = [...closed(approval, question), ...lost(call_id, begun, "aborted")];
    return [...before, { type: "tool.end", payload: { call_id, ok: false, error } }];
  });
  return [...ends, ...endsOfNodes(strategy, "The run was redirected before it was done.")];
}

function closed(approval: Ask | null, question: Ask | null): readonly Draft[] {
  const outcome = "closed";
  if (approval?.resolved === null)
    return [
      {
        type: "approval.resolved",
        payload: { approval_id: approval.id, decision: "deny", outcome, reason: null },
      },
    ];
  if (question?.resolved === null)
    return [{ type: "clarify.resolved", payload: { clarify_id: question.id, answer: null, outcome } }];
  return [];
}
