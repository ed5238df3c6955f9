// TENANT: several tenants do the same at the same time, under the same ids. Each lists what is its own and nothing else;
// and whoever asks for what only another has is answered as if it had never been, at whatever moment.

import { type Facts, RunwireError } from "@runwire/protocol";
import { questionFor, type RouteUnderTest, routesIn } from "../gateway/access.js";
import type { Question } from "../gateway/asking.js";
import type { Key } from "../suites/store/under-test.js";
import { blobOf } from "./erasing.js";
import { sharedSession } from "./producing.js";
import type { World } from "./world.js";

const answerMsMax = 30_000;
/** In the beginning, and then ever more seldom: what takes hours has little to do. */
const asksOften = 20;

/** With one tenant's credentials, for runs that another has begun, on every route that names one. */
export function intrude(world: World, name: string): void {
  world.accompany(`${name} who asks for what is not theirs`, async (signal) => {
    const openapi = await lasting(world, { path: "/openapi.json" }, signal);
    const routes = routesIn(JSON.parse(openapi.text)).filter(({ path }) => path.includes("{"));
    for (let asks = 0; ; asks++) {
      await world.sleep(world.whole(50, 1000) * (1 + asks / asksOften));
      signal.throwIfAborted();
      const theirs = world.roots.filter(({ tenant }) => tenant !== world.tenant);
      if (theirs.length === 0) continue;
      await expectNothing(world, world.pick(routes), world.pick(theirs), signal);
    }
  });
}

async function expectNothing(
  world: World,
  route: RouteUnderTest,
  { tenant, run_id }: Key,
  signal: AbortSignal,
): Promise<void> {
  const theirs = { id: run_id, ref: blobOf(tenant) };
  const never = { id: `${run_id.slice(0, -6)}ZZZZZZ`, ref: blobOf("nobody") };
  const ask = async (ids: typeof theirs): Promise<string> => {
    const question = questionFor(route, { request: "appr_1_a", producer: "p", session: "ses_none", ...ids });
    const { text, ...head } = await lasting(world, question, signal);
    return JSON.stringify([head, text.replaceAll(ids.id, "ID").replaceAll(ids.ref, "REF")]);
  };
  const [told, expected] = [await ask(theirs), await ask(never)];
  if (told === expected) return;
  const asked = `${world.tenant} asks ${route.name} for ${run_id} of ${tenant}`;
  throw new Error(`${asked}: ${told}, and for what never was: ${expected}`);
}

interface Answered {
  readonly status: number;
  readonly headers: object;
  readonly text: string;
}

/** Asks until there is an answer that asking again would not change. */
async function lasting(world: World, question: Question, signal: AbortSignal): Promise<Answered> {
  for (;;) {
    signal.throwIfAborted();
    const answer = await asked(world, question).catch(() => undefined);
    if (answer !== undefined && answer.status < 500 && answer.status !== 429) return answer;
    await world.sleep(world.whole(10, 2000));
  }
}

async function asked({ endpoint }: World, { method = "GET", path, body }: Question): Promise<Answered> {
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(new Error("no answer")), answerMsMax);
  try {
    const response = await (endpoint.fetch as typeof fetch)(`${endpoint.base}${path}`, {
      method,
      headers: { ...(endpoint.headers as object), "content-type": "application/json" },
      signal: patience.signal,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const { date: _, "runwire-request-id": __, ...headers } = Object.fromEntries(response.headers);
    return { status: response.status, headers, text: await response.text() };
  } finally {
    clearTimeout(timer);
  }
}

/** Looks through a tenant's lists, again and again. */
export function lookThrough(world: World, name: string): void {
  const shown = expectOwn(world);
  world.accompany(`${name} who looks through lists`, async (signal) => {
    for (let looks = 0; ; looks++) {
      await world.sleep(world.whole(50, 1000) * (1 + looks / asksOften));
      signal.throwIfAborted();
      try {
        for (const { root_id } of await world.pick([runsIn, sessionsIn, turnsIn, inboxIn])(world))
          shown(root_id);
      } catch (error) {
        // No run of the session is there yet, or no more.
        if (!(error instanceof RunwireError) || !(error.row.retry || error.row.status === 404)) throw error;
      }
    }
  });
}

type Listed = readonly Facts[];

const runsIn = async ({ api }: World): Promise<Listed> => (await api.listRuns({ limit: 200 })).runs;
async function sessionsIn({ api, tenant }: World): Promise<Listed> {
  const { sessions } = await api.listSessions({ limit: 200 });
  // Another's of the same id would be told by its turns, were it not looked up as one's own.
  if (new Set(sessions.map(({ session_id }) => session_id)).size < sessions.length)
    throw new Error(`${tenant} is shown a session twice`);
  return sessions.map(({ last_turn }) => last_turn);
}
const turnsIn = async ({ api }: World): Promise<Listed> => (await api.session(sharedSession)).turns;
const inboxIn = async ({ api }: World): Promise<Listed> => (await api.inbox()).items;

/** What a tenant is shown is looked at as soon as it is known whose it is: whoever begins a run is told its id later. */
export function expectOwn({ tenant, roots, always }: World): (root_id: unknown) => void {
  const shown = new Set<unknown>();
  always(() => {
    for (const root_id of shown) {
      const owner = roots.find(({ run_id }) => run_id === root_id);
      if (owner === undefined) continue;
      if (owner.tenant !== tenant) throw new Error(`${tenant} is shown ${root_id} of ${owner.tenant}`);
      shown.delete(root_id);
    }
  });
  return (root_id) => void shown.add(root_id);
}
