// What an event does to the tasks that are open, and how that is said: as messages that are derived from the event, in
// the order that readers of the standard wait for. An attempt ends before its task, a task before the turn.

import { type Event, type Facts, is, type Scope } from "../../events.js";
import { isFinal, type RunState } from "../../state.js";
import {
  doing,
  endsWith,
  isOpen,
  openAttempts,
  openTasks,
  type Task,
  type Tasks,
  tasksDoing,
  tasksEnded,
  tasksTold,
} from "../../tasks.js";
import type { Derived } from "./derive.js";
import { statusWords } from "./rows.js";

export interface TaskCourse {
  readonly before: Tasks;
  /** With what the event says itself. */
  readonly told: Tasks;
  /** With what follows from it, and without what need not be known any longer. */
  readonly after: Tasks;
}

/** Of those that have ended or are followed no further, so many are remembered: told of again, they do not open. */
const endedMax = 32;
/** Of those of one run that are open, so many are followed. Runs are as many as live, and take theirs with them. */
const openMax = 64;

const attemptsMax = 8;

export function taskCourse(
  before: Tasks,
  e: Event,
  state: RunState | null,
  approvals: number,
  questions: number,
): TaskCourse {
  const told = tasksTold(null, before, e);
  // Most runs have no tasks, and most events say nothing of them.
  if (Object.keys(told).length === 0) return { before, told, after: told };
  const run_id = e.child_id ?? e.run_id;
  const ended = tasksEnded(null, told, e);
  const after = tasksDoing(null, ended, run_id, doing(state, approvals, questions));
  const isEnd = is(e, "run.lifecycle") && isFinal(e.payload.state);
  return {
    before,
    told,
    after: after === before && !isEnd ? before : kept(after, run_id, isEnd ? 0 : openMax),
  };
}

/**
 * `most`: how many open ones of the run are followed. The others are remembered, as those are that have ended: the id
 * of one that its run left behind is no other run's.
 */
function kept(tasks: Tasks, run_id: string, most: number): Tasks {
  const own = openTasks(null, tasks, run_id);
  const left = new Set(own.slice(0, Math.max(0, own.length - most)));
  const all = Object.values(tasks).map((task) => (left.has(task) ? { ...task, run_id: nobody } : task));
  const isFollowed = (task: Task): boolean => isOpen(task) && task.run_id !== nobody;
  const open = all.filter(isFollowed).map((task) => withAttempts(task, keptAttempts(task)));
  const others = all
    .filter((task) => !isFollowed(task))
    .slice(-endedMax)
    .map((task) => withAttempts(task, []));
  return Object.fromEntries([...others, ...open].map((task) => [task.task_id, task]));
}

const nobody = "";

/** Those that are open, and the last of those that have ended: what is told of one again does not open it either. */
function keptAttempts({ attempts }: Task): Task["attempts"] {
  return attempts.filter(({ status }, i) => status === "running" || i >= attempts.length - attemptsMax);
}

/** The same object where it has no others: whoever looks for what has changed looks at objects. */
function withAttempts(task: Task, attempts: Task["attempts"]): Task {
  return task.attempts.length === attempts.length ? task : { ...task, attempts };
}

/** The task of a run that has one and no more, and the attempt at it. */
export function soleTask(
  tasks: Tasks,
  run_id: string,
): { readonly task: string | null; readonly attempt: string | null } {
  const [task, another] = openTasks(null, tasks, run_id);
  if (task === undefined || another !== undefined) return { task: null, attempt: null };
  return { task: task.task_id, attempt: openAttempts(task).at(-1)?.attempt_id ?? null };
}

/** How tasks end with their run. What was opened last ends first. */
export function taskEnds({ told }: TaskCourse, e: Event): readonly Derived[] {
  if (!is(e, "run.lifecycle") || !isFinal(e.payload.state)) return [];
  const { state, reason } = e.payload;
  const why = reason == null ? {} : { reason };
  const name = state === "done" ? "completed" : "failed";
  const payload = { ...statusWords[state], ...why };
  return openTasks(null, told, e.child_id ?? e.run_id)
    .filter((task) => endsWith(task, state))
    .toReversed()
    .flatMap((task): readonly Derived[] => [
      // Whoever ends a run has meant to, also where nobody asked for it.
      ...(state === "aborted" && task.status !== "cancelling" ? [of(task, "cancel_requested", why)] : []),
      ...openAttempts(task).map(({ attempt_id }) =>
        of(task, `attempt.${name}`, payload, { run_id: attempt_id }),
      ),
      of(task, state === "aborted" ? "cancelled" : name, payload),
    ]);
}

/** What tasks do because their run does, or because somebody wants it to end. */
export function taskMoves({ before, told, after }: TaskCourse, e: Event): readonly Derived[] {
  if (before === after) return [];
  const cancelled = is(e, "control.requested")
    ? openTasks(null, told, e.child_id ?? e.run_id).filter((task) => task !== before[task.task_id])
    : [];
  const reason = e.payload.reason == null ? {} : { reason: e.payload.reason };
  const moved = openTasks(null, after, e.child_id ?? e.run_id).filter(
    ({ task_id, status }) => told[task_id]?.status !== status,
  );
  return [
    ...cancelled.map((task) => of(task, "cancel_requested", reason)),
    ...moved.map((task) => {
      const { status } = task;
      if (status === "running" || status === "paused")
        return of(task, status === "running" ? "resumed" : "paused", { status });
      return of(task, "waiting", { status });
    }),
  ];
}

function of(task: Task, name: string, payload: Facts, more: Scope = {}): Derived {
  const { task_id, parent_task_id, root_task_id } = task;
  const scope: Scope = {
    task_id,
    ...(parent_task_id === undefined ? {} : { parent_task_id }),
    ...(root_task_id === undefined ? {} : { root_task_id }),
    ...more,
  };
  return { type: `task.${name}`, scope, payload };
}
