// Which model a run speaks to: the one it asked for, and when that is given up on, the next of its fallbacks, which goes
// on from what was said. Each decision is an event, so whoever takes the run up keeps to it.

import { type Draft, type Facts, messageOf } from "@runwire/protocol";
import type { Course } from "./course.js";
import type { Model } from "./model.js";

export interface Candidate {
  /** As it was asked for; null is the server's own choice. */
  readonly name: string | null;
  /** Undefined where it cannot be had. */
  readonly model: Model | undefined;
  readonly error?: unknown;
}

export interface Router {
  /** The model that answers now. Throws where none can be had. */
  model(course: Course): Model;
  /** What is decided before anything is asked; nothing, where it was decided before and still can be had. */
  opening(course: Course): readonly Draft[];
  /** That another goes on; null where there is none. */
  fallback(course: Course, why: Facts): Draft | null;
}

export function router(
  modelOf: (name: string | null) => Model,
  asked: string | null,
  fallbacks: readonly string[],
): Router {
  const candidates = distinct([asked, ...fallbacks].map((name) => candidateOf(modelOf, name)));
  const current = ({ candidate }: Course): Candidate => {
    if (candidate === undefined)
      return candidates.find(({ model }) => model !== undefined) ?? candidateOf(modelOf, asked);
    // What the operator has taken from the list since is still what the run speaks to.
    return candidates.find(({ name }) => name === candidate) ?? candidateOf(modelOf, candidate);
  };

  function fallback(course: Course, why: Facts): Draft | null {
    const from = current(course);
    const tried = [from.name, ...course.givenUp];
    const to = candidates.find(({ name, model }) => model !== undefined && !tried.includes(name));
    if (to === undefined) return null;
    return { type: "routing.fallback.applied", payload: { from: toldOf(from), to: toldOf(to), ...why } };
  }

  return {
    model(course) {
      const { model, error } = current(course);
      if (model === undefined) throw error;
      return model;
    },
    opening(course) {
      const { model, error, name } = current(course);
      if (course.candidate !== undefined) {
        if (model !== undefined) return [];
        return [fallback(course, { reason: messageOf(error) }) ?? notPossible(error)];
      }
      const had = candidates.filter((one) => one.model !== undefined);
      const lost = candidates.filter((one) => one.model === undefined);
      const resolved: Draft = {
        type: "routing.candidates.resolved",
        payload: { candidates: had.map(toldOf), unavailable: lost.map(toldOf) },
      };
      if (model === undefined) return [resolved, notPossible(error)];
      const isOnly = had.length === 1;
      const reason = name === asked ? "asked for" : "what was asked for cannot be had";
      return [
        resolved,
        {
          type: isOnly ? "routing.single_candidate" : "routing.decided",
          payload: { ...toldOf({ name, model }), reason },
        },
      ];
    },
    fallback,
  };
}

function notPossible(error: unknown): Draft {
  return { type: "routing.not_possible", payload: { reason: messageOf(error) } };
}

function candidateOf(modelOf: (name: string | null) => Model, name: string | null): Candidate {
  try {
    return { name, model: modelOf(name) };
  } catch (error) {
    return { name, model: undefined, error };
  }
}

/** A model that two names are for is one candidate. */
function distinct(candidates: readonly Candidate[]): readonly Candidate[] {
  const keyOf = ({ name, model }: Candidate): string =>
    model === undefined ? `${name}` : `${model.provider}/${model.name}`;
  return candidates.filter((one, i) => candidates.findIndex((other) => keyOf(other) === keyOf(one)) === i);
}

function toldOf({ name, model, error }: Candidate): Facts {
  return model === undefined
    ? { candidate: name, reason: messageOf(error) }
    : { candidate: name, model: model.name, provider: model.provider };
}
