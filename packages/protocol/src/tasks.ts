// Tasks: what runs are for, and the attempts at them. What becomes of a task follows from what is told of it and from
// what its run does: it waits while the run waits, and ends with the run, where nobody has said so before.
//
//   task.created ─ started ─┬─ waiting ⇄ resumed ─┬─ attempt.completed ─ task.completed
//       attempt.started ────┘  paused  ⇄          └─ attempt.failed ──── task.failed │ cancelled
//
// The fold is used twice: transcripts keep all of it, an encoder only what is open.

import { type Event, is } from "./events.js";
import { type Mine, namesIn, newFold, withMember } from "./folding.js";
import { isFinal, type RunState } from "./state.js";

export interface Task {
  readonly task_id: string;
  /** The run that told of it first. With that it waits, and with that it ends. */
  readonly run_id: string;
  readonly parent_task_id?: string;
  readonly root_task_id?: string;
  readonly status: string;
  /** The last of them, in their order; one that failed stays when the next begins. */
  readonly attempts: readonly Attempt[];
  /** Its producer says itself when it waits: then nothing is concluded from its run. */
  readonly tellsWaits?: true;
}

export interface Attempt {
  readonly attempt_id: string;
  readonly status: "running" | "completed" | "failed";
  readonly reason?: string;
  readonly started_at?: string;
  readonly ended_at?: string;
}

export interface Tasks {
  readonly [task_id: string]: Task;
}

/** What a run is at, as far as its tasks are concerned. */
export type Doing = "running" | "paused" | "waiting_permission" | "waiting_input";

/** What the types say of a task. Null: that it is there, in whatever status. */
export const taskStatuses: { readonly [name: string]: string | null } = {
  created: "draft",
  accepted: "accepted",
  queued: "queued",
  started: "running",
  updated: null,
  progress: null,
  waiting: "waiting_input",
  blocked: "blocked",
  paused: "paused",
  resumed: "running",
  retrying: "retrying",
  cancel_requested: "cancelling",
  cancelled: "cancelled",
  timed_out: "timed_out",
  failed: "failed",
  lost: "lost",
  completed: "completed",
  archived: "archived",
  "attempt.started": null,
  "attempt.completed": null,
  "attempt.failed": null,
};

const endStatuses: ReadonlySet<string> = new Set(
  "completed failed cancelled timed_out lost archived".split(" "),
);
const waits: ReadonlySet<string> = new Set(["waiting", "blocked", "paused", "resumed"]);
/** Before an attempt begins; when one does, the task runs. */
const beforeAttempt: ReadonlySet<string> = new Set(["draft", "accepted", "queued", "retrying"]);
const doings: ReadonlySet<string> = new Set<Doing>([
  "running",
  "paused",
  "waiting_permission",
  "waiting_input",
]);

/** The status that a message gives its task; null where it leaves the one that it has, which is `now`. */
export function statusTold(name: string, now: string | undefined, told: unknown): string | null {
  if (name === "attempt.started") return now !== undefined && beforeAttempt.has(now) ? "running" : null;
  if (name === "waiting" && typeof told === "string" && told.startsWith("waiting_")) return told;
  return taskStatuses[name] ?? null;
}

export function isOpen({ status }: Task): boolean {
  return !endStatuses.has(status);
}

export function doing(state: RunState | null, approvals: number, questions: number): Doing {
  if (state === "paused") return "paused";
  if (state === "awaiting_approval" || approvals > 0) return "waiting_permission";
  return questions > 0 ? "waiting_input" : "running";
}

/** What an event says of tasks. */
export function tasksTold(mine: Mine | null, tasks: Tasks, e: Event): Tasks {
  const run_id = e.child_id ?? e.run_id;
  if (is(e, "control.requested") && e.payload.action === "abort")
    return changed(mine, tasks, run_id, (task) => ({ ...task, status: "cancelling" }));
  const task_id = e.type.startsWith("task.") ? e.scope?.task_id : undefined;
  const name = e.type.slice("task.".length);
  if (task_id === undefined || !Object.hasOwn(taskStatuses, name)) return tasks;
  const known = taskOf(tasks, task_id) ?? newTask(e, task_id, run_id);
  const { status: said, reason } = e.payload;
  const told = statusTold(name, known.status, said);
  const mayEnd = told !== null && endStatuses.has(told);
  const status = told === null || (!isOpen(known) && !mayEnd) ? known.status : told;
  const task: Task = {
    ...known,
    status,
    ...(waits.has(name) ? { tellsWaits: true } : {}),
    attempts: name.startsWith("attempt.")
      ? withAttempt(known.attempts, name, attemptIn(e), e.ts, typeof reason === "string" ? reason : undefined)
      : known.attempts,
  };
  return withMember(mine, tasks, task_id, task, openIn);
}

function newTask({ scope }: Event, task_id: string, run_id: string): Task {
  const { parent_task_id, root_task_id } = scope ?? {};
  return {
    task_id,
    run_id,
    ...(parent_task_id === undefined ? {} : { parent_task_id }),
    ...(root_task_id === undefined ? {} : { root_task_id }),
    status: "unknown",
    attempts: [],
  };
}

/** Each is looked at when another is told of. */
const attemptsMax = 1000;

/** An attempt has its own id, or that of its run. */
function attemptIn({ scope, child_id, run_id }: Event): string {
  return scope?.attempt_id ?? scope?.run_id ?? child_id ?? run_id;
}

function withAttempt(
  attempts: readonly Attempt[],
  name: string,
  attempt_id: string,
  ts: string,
  reason: string | undefined,
): readonly Attempt[] {
  const known = attempts.findLast((attempt) => attempt.attempt_id === attempt_id);
  const added = (attempt: Attempt): readonly Attempt[] => [...attempts.slice(1 - attemptsMax), attempt];
  if (name === "attempt.started")
    return known === undefined ? added({ attempt_id, status: "running", started_at: ts }) : attempts;
  const ended: Attempt = {
    ...known,
    attempt_id,
    status: name === "attempt.completed" ? "completed" : "failed",
    ended_at: ts,
    ...(reason === undefined ? {} : { reason }),
  };
  if (known === undefined) return added(ended);
  return attempts.map((attempt) => (attempt === known ? ended : attempt));
}

/** Tasks wait and go on with their run, unless their producer tells of that. */
export function tasksDoing(mine: Mine | null, tasks: Tasks, run_id: string, now: Doing): Tasks {
  return changed(mine, tasks, run_id, (task) =>
    task.tellsWaits || task.status === now || !doings.has(task.status) ? task : { ...task, status: now },
  );
}

const ends: { readonly [S in RunState]?: string } = {
  done: "completed",
  error: "failed",
  aborted: "cancelled",
};

/** What is open ends with its run. */
export function tasksEnded(mine: Mine | null, tasks: Tasks, e: Event): Tasks {
  if (!is(e, "run.lifecycle") || !isFinal(e.payload.state)) return tasks;
  const { state, reason } = e.payload;
  const name = state === "done" ? "attempt.completed" : "attempt.failed";
  return changed(mine, tasks, e.child_id ?? e.run_id, (task) => {
    if (!endsWith(task, state)) return task;
    const attempts = openAttempts(task).reduce(
      (all, { attempt_id }) => withAttempt(all, name, attempt_id, e.ts, reason ?? undefined),
      task.attempts,
    );
    return { ...task, status: ends[state] ?? task.status, attempts };
  });
}

/** That its run is done does not make a task so that was never begun. */
export function endsWith({ status }: Task, state: RunState): boolean {
  return state !== "done" || doings.has(status);
}

export function openAttempts({ attempts }: Task): readonly Attempt[] {
  return attempts.filter(({ status }) => status === "running");
}

/** The open tasks of a run. */
export function openTasks(mine: Mine | null, tasks: Tasks, run_id: string): readonly Task[] {
  return namesIn(mine, tasks, openIn, run_id).map((task_id) => tasks[task_id] as Task);
}

/** The run that an open task belongs to. */
function openIn(task: Task): string | null {
  return isOpen(task) ? task.run_id : null;
}

/** Changes the open tasks of a run; the same object where nothing changes. */
function changed(mine: Mine | null, tasks: Tasks, run_id: string, change: (task: Task) => Task): Tasks {
  const moved = openTasks(mine, tasks, run_id)
    .map((task) => [task, change(task)] as const)
    .filter(([before, after]) => before !== after);
  const fold = mine ?? newFold();
  return moved.reduce((all, [, after]) => withMember<Task>(fold, all, after.task_id, after, openIn), tasks);
}

function taskOf(tasks: Tasks, task_id: string): Task | undefined {
  return Object.hasOwn(tasks, task_id) ? tasks[task_id] : undefined;
}
