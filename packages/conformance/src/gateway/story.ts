// Runs as producers write them, with events of every kind and children three levels deep.

import type { Draft, Event, NamedType } from "@runwire/protocol";
import fc from "fast-check";
import { arbitraryDraftOf, arbitraryOpenType, namedTypes } from "../arbitraries.js";
import { type ArbitraryRun, arbitraryRun } from "../arbitrary-runs.js";
import { append, createRun, lifecycle, say } from "./calls.js";

/** Written by the server's own rules, so a producer cannot say them at any place. */
const ruled: ReadonlySet<NamedType> = new Set<NamedType>(["run.lifecycle", "child.spawn"]);

let children = 0;

/** Child ids are unique in a server, so each run gets its own. */
export function freshChildId(): string {
  children += 1;
  return `run_child.${process.pid}.${children}`;
}

/** One event of every type from a run and from each of three generations below it, then the ends. */
export function storyOfEveryType(seed: number): readonly Draft[] {
  const generations = [freshChildId(), freshChildId(), freshChildId()];
  const producers = [undefined, ...generations];
  const drafts: Draft[] = [];
  for (const [depth, producer] of producers.entries()) {
    const child_id = producers[depth + 1];
    if (child_id !== undefined) drafts.push(say("child.spawn", { child_id, prompt: "dig" }, producer));
  }
  for (const [i, type] of namedTypes.filter((type) => !ruled.has(type)).entries()) {
    for (const [depth, producer] of producers.entries()) {
      const [draft] = fc.sample(arbitraryDraftOf(type), { seed: seed + i * 4 + depth, numRuns: 1 });
      drafts.push(from(withOwnRequest(draft as Draft, `${i}.${depth}`), producer));
    }
  }
  const open = fc.sample(arbitraryOpenType.chain(arbitraryDraftOf), { seed, numRuns: 4 });
  drafts.push(...open.map((draft, i) => from(draft, producers[i])));
  // The deepest ends as itself, the next with its parent, so both ways are in the log.
  drafts.push(lifecycle("done", generations[2]), lifecycle("error", generations[1]), lifecycle("done"));
  return drafts;
}

/** A run asks under an id once. */
function withOwnRequest(draft: Draft, suffix: string): Draft {
  const member = { "approval.requested": "approval_id", "clarify.requested": "clarify_id" }[
    draft.type as string
  ];
  if (member === undefined) return draft;
  const payload = draft.payload as { readonly [member: string]: unknown };
  return {
    ...draft,
    payload: { ...payload, [member]: `${String(payload[member]).slice(0, 100)}.${suffix}` },
  } as Draft;
}

/** Any run that a server takes from a producer. */
export const arbitraryStory: fc.Arbitrary<readonly Draft[]> = arbitraryRun({ opening: false }).map(
  withOwnIds,
);

function withOwnIds({ drafts }: ArbitraryRun): readonly Draft[] {
  const own = new Map<string, string>();
  for (const draft of drafts) {
    if (draft.type === "child.spawn")
      own.set((draft.payload as { child_id: string }).child_id, freshChildId());
  }
  return drafts.map((draft) => {
    const child_id = draft.child_id == null ? undefined : own.get(draft.child_id);
    if (draft.type !== "child.spawn") return from(draft, child_id);
    const { child_id: spawned, ...payload } = draft.payload as { child_id: string };
    return from({ ...draft, payload: { ...payload, child_id: own.get(spawned) } } as Draft, child_id);
  });
}

function from({ type, payload, scope }: Draft, child_id: string | undefined): Draft {
  return {
    type,
    payload,
    ...(scope === undefined ? {} : { scope }),
    ...(child_id === undefined ? {} : { child_id }),
  };
}

/** Writes a whole run, in batches, and says which it is. */
export async function record(
  url: string,
  drafts: readonly Draft[],
  batchEvents = drafts.length,
): Promise<string> {
  const run_id = await createRun(url);
  for (let at = 0; at < drafts.length; at += batchEvents) {
    await append(url, run_id, ...drafts.slice(at, at + batchEvents));
  }
  return run_id;
}

/** Joined text of one kind, of one producing run. */
export function joined(events: readonly Event[], type: string, child_id: string | null = null): string {
  return events
    .filter((e) => e.type === type && e.child_id === child_id)
    .map((e) => (e.payload as { text: string }).text)
    .join("");
}
