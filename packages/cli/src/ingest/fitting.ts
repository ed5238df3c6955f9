// What of a wire's events goes to the server that stores them: a run there has its own id, its first state and what it
// was asked, and so have its children. What the server would refuse is refused here, where its line is still known.

import {
  type Draft,
  type Event,
  type EventType,
  is,
  isFinal,
  mayMove,
  type Payloads,
  type RunState,
  RunwireError,
} from "@runwire/protocol";

export interface Fitting {
  /** Throws a RunwireError where the event could not be stored; the run goes on without it. */
  draftsOf(e: Event): readonly Draft[];
  /** The same where the wire ends without having ended the run. */
  end(payload: Payloads["run.lifecycle"]): readonly Draft[];
  /** Takes a child of the server's for ended, whatever the wire says: somebody else has ended it, or it never began. */
  lose(child_id: string): void;
  /** Whether the wire has ended the run. */
  readonly ended: boolean;
  /** How the run's turn has ended, on a wire that tells of turns and not of runs; null while it goes on. */
  readonly turn: Payloads["run.lifecycle"] | null;
}

/** The run, or a child of it. */
interface Target {
  /** Null for the run itself. */
  readonly child_id: string | null;
  /** What the wire calls the run above it; the run itself has none. */
  readonly parent?: string | null;
  readonly state: RunState;
  /** Whether what it was asked is stored. */
  readonly isAsked: boolean;
}

/** What of an event goes on. */
type Said<T extends EventType = EventType> = Pick<Draft<T>, "type" | "payload" | "scope">;

const running: Draft = { type: "run.lifecycle", payload: { state: "running", reason: null } };

const unapproved = { state: "error", reason: "it ended without a plan that was approved" } as const;

/** What the server has of the run when the wire begins. */
export interface Begun {
  /** Whether it was created with what the wire says it was asked. */
  readonly isAsked: boolean;
  readonly state: RunState;
  /** Whether it goes on only once a person has approved its plan. */
  readonly isGated: boolean;
  /** The number of its last event: what people said up to there was heard by whoever wrote it then. */
  readonly pos: number;
}

export function fitting({ isAsked, state, isGated }: Begun, newChildId: () => string): Fitting {
  // Only where nothing but its producer gets it on; in any other state the end waits for people.
  const first = state === "planning" ? "planning" : "running";
  const targets = new Map<string | null, Target>([[null, { child_id: null, state: first, isAsked }]]);
  /** What the wire calls the children of the server's. */
  const names = new Map<string, string>();
  const requests = new Set<string>();
  let turn: Fitting["turn"] = null;

  function targetOf(child_id: string | null): Target {
    const target = targets.get(child_id);
    if (target === undefined) throw new RunwireError("KAI-RUN-CHILD-0001", `${child_id}`);
    if (isFinal(target.state))
      throw new RunwireError("KAI-RUN-ENDED-0001", `${child_id ?? "the run"} is ${target.state}`);
    // A run's end is that of all below it.
    if (target.parent !== undefined) targetOf(target.parent);
    return target;
  }

  function move(target: Target, of: string | null, e: Said<"run.lifecycle">): readonly Draft[] {
    const { state } = e.payload;
    if (state === target.state) return [];
    // Only a person gets it on, and only by its plan: what is said of states before that is the server's to say.
    const isHeld = isGated && target.state === "planning";
    if (isHeld && !isFinal(state)) return [];
    if (isHeld && state === "done") return move(target, of, { ...e, payload: unapproved });
    // Plans and their approval are over where a wire tells of them.
    const fits = mayMove(target.state, state);
    if (!fits && !isFinal(state)) return [];
    targets.set(of, { ...target, state });
    return fits ? [draftOf(e, target)] : [draftOf({ ...e, ...running }, target), draftOf(e, target)];
  }

  function spawn(target: Target, e: Event<"child.spawn">): readonly Draft[] {
    const { child_id } = e.payload;
    if (targets.has(child_id)) throw new RunwireError("KAI-RUN-CHILD-0001", `${child_id} was spawned before`);
    const child = {
      child_id: newChildId(),
      parent: e.child_id,
      state: "running",
      isAsked: true,
    } as const;
    targets.set(child_id, child);
    names.set(child.child_id, child_id);
    return [draftOf({ ...e, payload: { ...e.payload, child_id: child.child_id } }, target)];
  }

  return {
    lose(child_id) {
      const name = names.get(child_id);
      const target = name === undefined ? undefined : targets.get(name);
      if (name !== undefined && target !== undefined && !isFinal(target.state))
        targets.set(name, { ...target, state: "aborted" });
    },
    end: (payload) => move(targetOf(null), null, { type: "run.lifecycle", payload }),
    get ended() {
      return isFinal(targets.get(null)?.state ?? "running");
    },
    get turn() {
      return turn;
    },
    draftsOf(e) {
      if (e.child_id === null && e.type.startsWith("turn.")) turn = turnEnded(e);
      const target = targetOf(e.child_id);
      if (is(e, "run.lifecycle")) return move(target, e.child_id, e);
      if (is(e, "child.spawn")) return spawn(target, e);
      if (is(e, "turn.submitted") && target.isAsked) {
        targets.set(e.child_id, { ...target, isAsked: false });
        return [];
      }
      // By itself, or once somebody approves it.
      if (is(e, "plan.proposal") && target.state === "planning")
        targets.set(e.child_id, { ...target, state: "running" });
      const asked = requestOf(e);
      if (asked !== undefined) {
        const key = requestKey(e.child_id, asked);
        if (requests.has(key)) throw new RunwireError("KAI-RUN-REQUEST-0004", asked);
        requests.add(key);
      }
      return [draftOf(e, target)];
    },
  };
}

function turnEnded(e: Event): Fitting["turn"] {
  if (is(e, "turn.completed")) return { state: "done", reason: null };
  if (!is(e, "turn.failed")) return null;
  const { status, reason } = e.payload;
  const why = typeof reason === "string" ? reason : "its turn failed";
  return { state: status === "cancelled" ? "aborted" : "error", reason: why };
}

function requestOf(e: Event): string | undefined {
  if (is(e, "approval.requested")) return e.payload.approval_id;
  return is(e, "clarify.requested") ? e.payload.clarify_id : undefined;
}

/** An id is a run's own: its children may ask under the same. */
export function requestKey(child_id: string | null | undefined, id: string): string {
  return `${child_id ?? ""} ${id}`;
}

function draftOf({ type, payload, scope }: Said, { child_id }: Target): Draft {
  return {
    type,
    payload,
    ...(child_id === null ? {} : { child_id }),
    ...(scope === undefined ? {} : { scope }),
  };
}
