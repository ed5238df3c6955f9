// Node runs, from `node_enter` to `node_exit`. Several may be open at once: nodes that run side by side, and those of
// child runs, each of which has its own. What is said without naming a node belongs to the one that its producer
// entered last, also after that was left, until the next is entered.

import { limits } from "../../limits.js";

export interface Span {
  /** Whose it is: a child run, or "" for the run itself. */
  readonly by: string;
  readonly name: string;
  readonly id: string;
}

export interface Spans {
  /** In the order in which they were entered; of each producer the last, as nobody need ever leave a node. */
  readonly open: readonly Span[];
  /** The last one of each producer. */
  readonly last: readonly Span[];
  /** How many there were. */
  readonly count: number;
}

export const noSpans: Spans = { open: [], last: [], count: 0 };

export function entered(spans: Spans, by: string, name: string, id?: string): Spans {
  const span = { by, name, id: id ?? `run-${name}-${spans.count}` };
  const own = spans.open.filter((one) => one.by === by);
  const oldest = own.length < limits.openNodesMax ? undefined : own[0];
  return {
    open: [...left(spans, oldest).open, span],
    last: [...spans.last.filter((one) => one.by !== by), span],
    count: spans.count + 1,
  };
}

/** The one that an exit by this name closes: the last that was entered under it. */
export function leaving(spans: Spans, by: string, name: string): Span | undefined {
  return spans.open.findLast((span) => span.by === by && span.name === name);
}

export function left(spans: Spans, span: Span | undefined): Spans {
  if (span === undefined) return spans;
  return { ...spans, open: spans.open.filter((one) => one !== span) };
}

/** A child that has ended enters nothing any more. */
export function over(spans: Spans, by: string): Spans {
  const others = (list: readonly Span[]): readonly Span[] => list.filter((span) => span.by !== by);
  return { ...spans, open: others(spans.open), last: others(spans.last) };
}

/** Where something is said: in the open node of that name, or in the last one. */
export function spanFor(spans: Spans, by: string, name?: string): Span | undefined {
  const named = name === undefined ? undefined : leaving(spans, by, name);
  return named ?? spans.last.find((span) => span.by === by);
}
