// Logs for tests: whole runs from the first event to the terminal one, numbered as a store would.

import { type Draft, type Event, idSource, isCore } from "@runwire/protocol";

export const run_id = "run_01HZ7K4PXA8QJ2M5V0T3RC6NBW";

/** Numbers the drafts; `seed` makes another log's ids. */
export function numbered(drafts: readonly Draft[], seed = 0.1, run = run_id): readonly Event[] {
  const ids = idSource(() => seed);
  let seq = 0;
  return drafts.map((draft, index) => {
    if (isCore(draft.type)) seq += 1;
    return {
      id: ids.next("evt", 1_700_000_000_000),
      ts: "2026-01-01T00:00:00.000Z",
      type: draft.type,
      run_id: run,
      child_id: draft.child_id ?? null,
      pos: index + 1,
      seq,
      payload: draft.payload,
    };
  });
}

/** A run that says these texts and is done. */
export function saying(texts: readonly string[], seed?: number, run?: string): readonly Event[] {
  const said = texts.map((text): Draft => ({ type: "text.delta", payload: { text } }));
  const opening: Draft[] = [
    { type: "run.lifecycle", payload: { state: "running" } },
    { type: "turn.submitted", payload: { prompt: "say it" } },
  ];
  const closing: Draft[] = [
    { type: "usage", payload: { tokens: texts.length } },
    { type: "run.lifecycle", payload: { state: "done" } },
  ];
  return numbered([...opening, ...said, ...closing], seed, run);
}
