// The course of a run as a task: what it is for, and the attempts at it. A server that takes a run up begins an attempt;
// that the one before was lost it says first, since whoever lost it could not.

import {
  type Draft,
  type Event,
  evidenceRefs,
  type Facts,
  isId,
  isObject,
  type Scope,
} from "@runwire/protocol";
import type { RunRecord } from "@runwire/server";

/** What the log says of it. */
export interface Course {
  /** How many attempts have begun. */
  readonly attempts: number;
  /** The model that was decided on, as it was asked for; undefined until then. */
  readonly candidate: string | null | undefined;
  /** Those that were given up on. */
  readonly givenUp: readonly (string | null)[];
}

export const firstCourse: Course = { attempts: 0, candidate: undefined, givenUp: [] };

export function advanceCourse(course: Course, { type, payload }: Event): Course {
  switch (type) {
    case "task.attempt.started":
      return { ...course, attempts: course.attempts + 1 };
    case "routing.decided":
    case "routing.single_candidate":
      return { ...course, candidate: candidateIn(payload) };
    case "routing.fallback.applied": {
      const { from, to } = payload as Facts;
      return { ...course, candidate: candidateIn(to), givenUp: [...course.givenUp, candidateIn(from)] };
    }
    default:
      return course;
  }
}

function candidateIn(told: unknown): string | null {
  const candidate = isObject(told) ? told.candidate : null;
  return typeof candidate === "string" ? candidate : null;
}

/** A run's task has the run's own id under another name, so that everybody knows the one by the other. */
function taskScope({ run_id, parent_id, root_id }: RunRecord): Scope {
  const task_id = taskIdOf(run_id);
  if (parent_id === null) return { task_id };
  return { task_id, parent_task_id: taskIdOf(parent_id), root_task_id: taskIdOf(root_id) };
}

function taskIdOf(run_id: string): string {
  const task_id = `task_${run_id.slice("run_".length)}`;
  return isId(task_id) ? task_id : run_id;
}

/** What the run is like, as far as it matters for who answers. */
export function profileOf(record: RunRecord, profile: Facts): Draft {
  return { type: "task.profile.resolved", payload: profile, scope: taskScope(record) };
}

/** What is written when a run is taken up, before anything is done. */
export function takenUp({ attempts }: Course, record: RunRecord): readonly Draft[] {
  const scope = taskScope(record);
  const attempt = attempts + 1;
  const began: Draft = {
    type: "task.attempt.started",
    payload: { attempt },
    scope: attemptScope(record, attempt),
  };
  if (attempts === 0) {
    const visibility = record.parent_id === null ? "foreground" : "background";
    return [
      { type: "task.created", payload: { kind: "run", visibility }, scope },
      { type: "task.started", payload: {}, scope },
      began,
    ];
  }
  const reason = "lost: the server stopped, or could not write";
  return [
    {
      type: "task.attempt.failed",
      payload: { attempt: attempts, status: "lost", reason },
      scope: attemptScope(record, attempts),
    },
    { type: "task.retrying", payload: { attempt, reason }, scope },
    began,
  ];
}

/** The first attempt is the run itself; those after it have names of their own. */
function attemptScope(record: RunRecord, attempt: number): Scope {
  const scope = taskScope(record);
  if (attempt === 1) return scope;
  const run_id = `${record.run_id}:${attempt}`;
  return { ...scope, run_id: isId(run_id) ? run_id : `attempt:${attempt}` };
}

/** Where it can be looked up what the run did, told before its end. */
export function evidenceOf(run_id: string): Draft {
  const { evidence_id, ...refs } = evidenceRefs(run_id);
  return { type: "evidence.changed", payload: refs, scope: { evidence_id } };
}
