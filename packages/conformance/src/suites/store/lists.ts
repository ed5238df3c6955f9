// Lists of runs, sessions and children: whatever is asked for, page by page, it is what a tenant has, and nothing else.

import { limits, type RunState } from "@runwire/protocol";
import fc from "fast-check";
import { expect, it } from "vitest";
import { asked, caseCount, newRun, onTrial, type Trial, tenant } from "./trial.js";
import type { Open } from "./under-test.js";

interface Root {
  readonly tenant: string;
  readonly run_id: string;
  readonly agent: string | null;
  readonly session_id: string;
  state: RunState;
  title: string | null;
}

const tenants = ["acme", "rival"];
const agents = ["scribe", "clerk", null];
const sessions = ["ses_1", "ses_2", "ses_3"];
const ends: readonly RunState[] = ["done", "aborted", "error"];
const states: readonly (RunState | undefined)[] = [undefined, "running", "paused", ...ends];

const step = fc.oneof(
  {
    arbitrary: fc.record({
      act: fc.constant("create" as const),
      tenant: fc.constantFrom(...tenants),
      agent: fc.constantFrom(...agents),
      session_id: fc.constantFrom(...sessions),
    }),
    weight: 6,
  },
  {
    arbitrary: fc.record({
      act: fc.constant("end" as const),
      pick: fc.nat(),
      state: fc.constantFrom(...ends),
    }),
    weight: 4,
  },
  {
    arbitrary: fc.record({ act: fc.constantFrom("title" as const, "spawn" as const), pick: fc.nat() }),
    weight: 2,
  },
  { arbitrary: fc.record({ act: fc.constant("erase" as const), pick: fc.nat() }), weight: 1 },
  { arbitrary: fc.record({ act: fc.constant("reopen" as const) }), weight: 1 },
);

const pageSize = fc.integer({ min: 1, max: 4 });

export function listLaws(open: Open): void {
  it("a list by state, agent and session is the list of all, filtered, in pages of any size", () =>
    holds(open, fc.array(step, { minLength: 10, maxLength: 40 }), async (trial, steps, limit) => {
      const roots = (await acted(trial, steps)).toReversed();
      for (const { tenant, state, agent, session_id } of everyQuery) {
        const expected = roots.filter(
          (root) =>
            root.tenant === tenant &&
            (state === undefined || root.state === state) &&
            (agent === null || root.agent === agent) &&
            (session_id === null || root.session_id === session_id),
        );
        const query = {
          limit,
          ...(state === undefined ? {} : { state }),
          ...(agent === null ? {} : { agent }),
          ...(session_id === null ? {} : { session_id }),
        };
        const found = await allPages(limit, async (from) => {
          const { heads, next } = await trial.store.listRuns(tenant, { ...query, ...from });
          return { ids: heads.map(({ run }) => run.run_id), next };
        });
        expect(found).toEqual(expected.map(({ run_id }) => run_id));
      }
    }));

  it("a session is its turns, under the first title that any of them was given", () =>
    holds(open, fc.array(step, { minLength: 10, maxLength: 40 }), async (trial, steps, limit) => {
      const roots = await acted(trial, steps);
      for (const tenant of tenants) {
        const mine = roots.filter((root) => root.tenant === tenant);
        const lastTurns = mine.filter(
          ({ session_id }, i) => !mine.slice(i + 1).some((later) => later.session_id === session_id),
        );
        const found = await allPages(limit, async (from) => {
          const page = await trial.store.listSessions(tenant, { limit, ...from });
          return { ids: page.sessions.map(({ session_id }) => session_id), next: page.next };
        });
        expect(found).toEqual(lastTurns.reverse().map(({ session_id }) => session_id));
        for (const session_id of sessions) {
          const turns = mine.filter((root) => root.session_id === session_id);
          const session = await trial.store.session(tenant, session_id, limit);
          if (turns.length === 0) {
            expect(session).toBeUndefined();
            continue;
          }
          const title = turns.find((turn) => turn.title !== null)?.title ?? null;
          expect(session).toMatchObject({ session_id, title, turns_total: turns.length });
          expect(session?.turns.map(({ run }) => run.run_id)).toEqual(
            turns.slice(-limit).map(({ run_id }) => run_id),
          );
        }
      }
    }));

  it("pages of runs and of sessions, and the turns of one, end where they are large", () =>
    onTrial(open, async (trial) => {
      const metadata = { note: "x".repeat(3 * 1024 * 1024) };
      const runs: string[] = [];
      for (let i = 0; i < 14; i++) {
        const of = { ...asked(), metadata, session_id: i < 7 ? "ses_long" : `ses_${i}` };
        const { run_id } = await trial.ingest.create(tenant, of);
        // After a restart these are known from the file alone.
        if (i % 2 === 0)
          await trial.ingest.append({ tenant, run_id }, [
            { type: "run.lifecycle", payload: { state: "done" } },
          ]);
        runs.unshift(run_id);
      }
      const session_ids = [13, 12, 11, 10, 9, 8, 7, "long"].map((name) => `ses_${name}`);
      for (let round = 0; round < 2; round++) {
        const pages = await allParts(async (from) => {
          const { heads, next } = await trial.store.listRuns(tenant, { limit: 200, ...from });
          return { ids: heads.map(({ run }) => run.run_id), next };
        });
        expect(pages).toEqual([runs.slice(0, 6), runs.slice(6, 12), runs.slice(12)]);
        const session = await trial.store.session(tenant, "ses_long", 200);
        expect(session?.turns.map(({ run }) => run.run_id)).toEqual(runs.slice(7, 13).reverse());
        expect(session?.turns_total).toBe(7);
        const sessions = await allParts(async (from) => {
          const page = await trial.store.listSessions(tenant, { limit: 200, ...from });
          return { ids: page.sessions.map(({ session_id }) => session_id), next: page.next };
        });
        expect(sessions).toEqual([session_ids.slice(0, 6), session_ids.slice(6)]);
        await trial.reopen();
      }
    }));

  it("a run's children are those that were spawned right below it, in pages of any size", () => {
    const acts = fc.record({ act: fc.constantFrom("spawn", "spawn", "end", "reopen"), pick: fc.nat() });
    return holds(open, fc.array(acts, { minLength: 5, maxLength: 20 }), async (trial, steps, limit) => {
      const root = await newRun(trial);
      const live = [root.run_id];
      const below = new Map<string, string[]>([[root.run_id, []]]);
      for (const { act, pick } of steps) {
        const run_id = live[pick % live.length] as string;
        const key = { tenant: root.tenant, run_id };
        if (act === "reopen") await trial.reopen();
        else if (act === "spawn" && (await trial.store.head(key))?.run.depth !== limits.childDepthMax) {
          const { child_id } = await trial.ingest.spawn(key, { prompt: "help" });
          below.get(run_id)?.push(child_id);
          below.set(child_id, []);
          live.push(child_id);
        } else if (act === "end" && below.get(run_id)?.length === 0 && run_id !== root.run_id) {
          await trial.ingest.append(key, [{ type: "run.lifecycle", payload: { state: "done" } }]);
          live.splice(live.indexOf(run_id), 1);
        }
      }
      for (const [run_id, children] of below) {
        const found = await allPages(limit, async (from) => {
          const page = await trial.store.children({ tenant: root.tenant, run_id }, { limit, ...from });
          return { ids: page.children, next: page.next };
        });
        expect(found).toEqual(children.sort());
        const foreign = await trial.store.children({ tenant: "rival", run_id }, { limit });
        expect(foreign).toEqual({ children: [], next: null });
      }
    });
  });
}

/** Holds a law against stores on which anything has been done, with pages of any size. */
function holds<T>(
  open: Open,
  anything: fc.Arbitrary<T>,
  law: (trial: Trial, done: T, limit: number) => Promise<void>,
): Promise<void> {
  const property = fc.asyncProperty(anything, pageSize, (done, limit) =>
    onTrial(open, (trial) => law(trial, done, limit)),
  );
  return fc.assert(property, caseCount(10));
}

const everyQuery = tenants.flatMap((tenant) =>
  states.flatMap((state) =>
    agents.flatMap((agent) =>
      [...sessions, null].map((session_id) => ({ tenant, state, agent, session_id })),
    ),
  ),
);

interface Page {
  readonly ids: readonly string[];
  readonly next: string | null;
}

/** All that a list has, page by page: only the last one may be empty, or have less than was asked for. */
async function allPages(
  limit: number,
  ask: (from: { readonly cursor?: string }) => Promise<Page>,
): Promise<readonly string[]> {
  const pages = await allParts(ask);
  for (const ids of pages.slice(0, -1)) expect(ids.length).toBe(limit);
  expect(pages.at(-1)?.length).toBeLessThanOrEqual(limit);
  return pages.flat();
}

async function allParts(
  ask: (from: { readonly cursor?: string }) => Promise<Page>,
): Promise<readonly (readonly string[])[]> {
  const pages: (readonly string[])[] = [];
  for (let from: { readonly cursor?: string } | null = {}; from !== null; ) {
    const { ids, next }: Page = await ask(from);
    pages.push(ids);
    from = next === null ? null : { cursor: next };
  }
  return pages;
}

/** Does what the steps say, and answers the roots that are left, the oldest first. */
async function acted(
  trial: Trial,
  steps: readonly (typeof step extends fc.Arbitrary<infer S> ? S : never)[],
): Promise<readonly Root[]> {
  let roots: Root[] = [];
  for (const taken of steps) {
    trial.clock.pass(5);
    if (taken.act === "reopen") await trial.reopen();
    else if (taken.act === "create") {
      const { tenant, agent, session_id } = taken;
      const { run_id } = await trial.ingest.create(tenant, { ...asked(), agent, session_id });
      const head = await trial.store.head({ tenant, run_id });
      roots.push({ tenant, run_id, agent, session_id, state: head?.state as RunState, title: null });
    } else {
      const root = roots[taken.pick % roots.length];
      if (root === undefined) continue;
      if (taken.act === "erase") {
        await trial.store.eraseTree(root);
        roots = roots.filter((other) => other !== root);
      } else if (!ends.includes(root.state)) await moved(trial, root, taken);
    }
  }
  return roots;
}

async function moved(
  { ingest }: Trial,
  root: Root,
  taken: { readonly act: "end"; readonly state: RunState } | { readonly act: "title" | "spawn" },
): Promise<void> {
  if (taken.act === "spawn") await ingest.spawn(root, { prompt: "help" });
  else if (taken.act === "end") {
    await ingest.append(root, [{ type: "run.lifecycle", payload: { state: taken.state } }]);
    root.state = taken.state;
  } else {
    root.title = `what ${root.run_id} is about`;
    await ingest.append(root, [{ type: "title", payload: { title: root.title } }]);
  }
}
