// The inbox: whatever people and agents do, it shows what waits and nothing else, to its own tenant and nobody else.

import {
  type Facts,
  foldInbox,
  type Inbox,
  type InboxItem,
  type InboxMessage,
  limits,
  type Transcript,
} from "@runwire/protocol";
import { createKey, startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import { type Key, writeKey } from "./access.js";
import { call, lifecycle, type Reply, runPath, say } from "./calls.js";
import { chance, isSoak } from "./chance.js";
import { openReading, type Reading } from "./readers.js";
import { underTest } from "./under-test.js";

const luck = chance("inbox");
const tenants = ["acme", "rival"] as const;
let aheadMs = 0;
const clock = { now: () => Date.now() + aheadMs, monotonic: () => performance.now() };
const server = underTest(startGateway, { auth: "keys" }, clock);
const keys = new Map<string, Key>(
  tenants.map((tenant) => [tenant, writeKey(createKey, server.folder, tenant)]),
);

const bearer = (tenant: string) => keys.get(tenant)?.headers;
const as = (tenant: string, method: string, path: string, body?: unknown): Promise<Reply> =>
  call(server.url, method, path, body, bearer(tenant));

async function newRun(tenant: string, asked: Facts = {}): Promise<string> {
  const run = { prompt: "go", producer: "external", lease_ms: 600_000, ...asked };
  return (await as(tenant, "POST", "/v1/agent/runs", run)).body.run_id as string;
}

const write = (tenant: string, run_id: string, ...drafts: readonly object[]): Promise<Reply> =>
  as(tenant, "POST", runPath(run_id, "events"), drafts);

const inboxOf = async (tenant: string): Promise<Inbox> =>
  (await as(tenant, "GET", "/v1/agent/inbox")).body as unknown as Inbox;

/** A reader that keeps the inbox across restarts, by its cursor. */
class Keeper {
  items: readonly InboxItem[] = [];
  pos: number | undefined;
  private taken = 0;
  private reading: Reading | undefined;

  constructor(
    readonly wire: "sse" | "ndjson",
    readonly tenant: string,
  ) {}

  async open(): Promise<void> {
    this.reading?.stop();
    this.taken = 0;
    const after = this.pos === undefined ? "" : `?after=${this.pos}`;
    const path = `/v1/agent/inbox/stream${after}`;
    this.reading = await openReading(this.wire, server.url, path, bearer(this.tenant));
  }

  async reach(pos: number): Promise<readonly InboxItem[]> {
    await this.reading?.until(({ heard }) => {
      for (; this.taken < heard.length; this.taken++) {
        const message = JSON.parse(heard[this.taken]?.data ?? "{}") as InboxMessage;
        this.items = foldInbox(this.items, message);
        this.pos = message.pos;
      }
      return (this.pos ?? -1) >= pos;
    });
    return this.items;
  }

  stop(): void {
    this.reading?.stop();
  }
}

/** What waits, by a fold over all runs of the tenant, as far as an item and a transcript both tell it. */
async function pendingOf(tenant: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (let cursor = ""; ; ) {
    const { body } = await as(tenant, "GET", `/v1/agent/runs?limit=200${cursor}`);
    for (const root of body.runs as readonly { run_id: string; session_id: string }[]) {
      const answer = await as(tenant, "GET", runPath(root.run_id, "snapshot?dialect=runwire"));
      const whole = answer.body.transcript as Transcript;
      const all = [whole, ...Object.values(whole.children).map(({ transcript }) => transcript)];
      for (const { run_id, state, plan, approvals, clarifications } of all) {
        const of = (kind: string, request_id: string | null, expires_at: unknown, what: unknown): void => {
          const { run_id: root_id, session_id } = root;
          found.push(
            JSON.stringify([kind, run_id, root_id, session_id, request_id, expires_at, whole.title, what]),
          );
        };
        for (const [id, { status, asked }] of Object.entries(approvals))
          if (status === "pending") of("approval", id, asked.expires_at ?? null, asked.tool);
        for (const [id, { status, asked }] of Object.entries(clarifications))
          if (status === "pending") of("clarify", id, asked.expires_at ?? null, asked.question);
        if (state === "awaiting_approval")
          of("plan", plan?.id ?? null, null, plan?.steps.map(({ title }) => title) ?? []);
      }
    }
    if (body.next === null) return found.toSorted();
    cursor = `&cursor=${body.next}`;
  }
}

function told(items: readonly InboxItem[]): readonly string[] {
  return items
    .map((item) => {
      const { kind, run_id, root_id, session_id, request_id, expires_at, title } = item;
      const what =
        kind === "approval"
          ? item.tool
          : kind === "clarify"
            ? item.question
            : (item.steps as readonly Facts[]).map((step) => step.title);
      return JSON.stringify([kind, run_id, root_id, session_id, request_id, expires_at, title, what]);
    })
    .toSorted();
}

interface Known {
  readonly tenant: string;
  readonly run_id: string;
  readonly root_id: string;
}

let made = 0;
const nextId = (prefix: string): string => `${prefix}_${++made}`;

/** One thing that somebody does. Refusals are as good as anything: the inbox follows what was stored. */
async function doSomething(runs: Known[], inboxes: ReadonlyMap<string, readonly InboxItem[]>): Promise<void> {
  const tenant = luck.pick(tenants);
  const run = luck.pick(runs);
  const item = luck.pick(inboxes.get(run.tenant) ?? []) as InboxItem | undefined;
  const ask = (draft: object): Promise<Reply> => write(run.tenant, run.run_id, draft);
  const expires_at = luck.pick([null, new Date(clock.now() + 30 * 60_000).toISOString()]);
  switch (luck.whole(0, 13)) {
    case 0: {
      const run_id = await newRun(tenant, { planning_gate: luck.pick(["off", "required", "required"]) });
      runs.push({ tenant, run_id, root_id: run_id });
      return;
    }
    case 1: {
      const { status, body } = await as(run.tenant, "POST", runPath(run.run_id, "children"), {
        prompt: "go",
      });
      if (status === 201) runs.push({ ...run, run_id: body.run_id as string });
      return;
    }
    case 2:
    case 3: {
      const payload = { approval_id: nextId("appr"), tool: luck.pick(["rm", "mail"]), expires_at };
      await ask(say("approval.requested", payload));
      return;
    }
    case 4:
    case 5:
      await ask(say("clarify.requested", { clarify_id: nextId("clar"), question: "which?", expires_at }));
      return;
    case 6: {
      const plan = { id: nextId("plan"), steps: [{ id: "s1", title: luck.pick(["look", "leap"]) }] };
      await ask(say("plan.proposal", { plan }));
      return;
    }
    case 7:
    case 8: {
      if (item === undefined) return;
      const { run_id, request_id } = item;
      if (item.kind === "approval")
        await as(run.tenant, "POST", runPath(run_id, `approvals/${request_id}`), { decision: "once" });
      else if (item.kind === "clarify")
        await as(run.tenant, "POST", runPath(run_id, `clarifications/${request_id}`), { answer: "this" });
      else
        await as(run.tenant, "POST", runPath(run_id, "approve_plan"), { approved: luck.pick([true, false]) });
      return;
    }
    case 9:
      await ask(say("title", { title: nextId("title") }));
      return;
    case 10:
      await ask(lifecycle(luck.pick(["planning", "done", "error", "redirecting", "awaiting_approval"])));
      return;
    case 11:
      await as(run.tenant, "POST", runPath(run.run_id, "abort"), {});
      return;
    case 12:
      if (luck.whole(0, 3) === 0) await as(run.tenant, "DELETE", `/v1/agent/runs/${run.root_id}`);
      return;
    default:
      // A producer that resolves by itself, and one that speaks of what nobody asked.
      await ask(say("approval.resolved", { approval_id: item?.request_id ?? "appr_none", decision: "deny" }));
  }
}

describe("the inbox", () => {
  it("is what a fold over all runs says is pending, whatever happens [RW-INBOX-1] [RW-INBOX-2] [RW-INBOX-3]", async () => {
    const keepers = tenants.flatMap((tenant) => [new Keeper("sse", tenant), new Keeper("ndjson", tenant)]);
    for (const keeper of keepers) await keeper.open();
    let runs: Known[] = [];
    for (const tenant of tenants) {
      const run_id = await newRun(tenant);
      runs.push({ tenant, run_id, root_id: run_id });
    }
    let most = 0;
    for (let round = 0; round < (isSoak ? 200 : 12); round++) {
      const inboxes = new Map<string, readonly InboxItem[]>();
      for (const tenant of tenants) inboxes.set(tenant, (await inboxOf(tenant)).items);
      // Some of it at once: answers race aborts and erasures.
      for (let i = 0; i < 5; i++)
        await Promise.all(Array.from({ length: 6 }, () => doSomething(runs, inboxes)));
      runs = runs.slice(-40);
      const special = round % 4;
      if (special === 1) {
        await server.restart();
        for (const keeper of keepers) await keeper.open();
      }
      if (special === 2) {
        aheadMs += 60 * 60_000;
        for (const keeper of keepers) {
          // Whoever watches sees them go.
          for (let late = true; late; ) {
            await keeper.reach((await inboxOf(keeper.tenant)).pos);
            late = keeper.items.some(
              ({ expires_at }) => expires_at !== null && Date.parse(expires_at) <= clock.now(),
            );
            if (late) await keeper.reach((keeper.pos ?? 0) + 1);
          }
        }
      }
      for (const keeper of keepers) {
        const { pos, items, total } = await inboxOf(keeper.tenant);
        expect(total).toBe(items.length);
        most = Math.max(most, total);
        expect([luck.seed, round, told(items)]).toEqual([luck.seed, round, await pendingOf(keeper.tenant)]);
        expect([luck.seed, round, await keeper.reach(pos)]).toEqual([luck.seed, round, items]);
        const fresh = new Keeper("ndjson", keeper.tenant);
        await fresh.open();
        expect(await fresh.reach(pos)).toEqual(items);
        fresh.stop();
      }
    }
    expect(most).toBeGreaterThan(1);
    for (const keeper of keepers) keeper.stop();
  });

  it("shows what is asked, in a few words, and children's requests too [RW-INBOX-1]", async () => {
    const root_id = await newRun("acme", { session_id: "sess_shown" });
    const child = (await as("acme", "POST", runPath(root_id, "children"), { prompt: "go" })).body
      .run_id as string;
    await write("acme", root_id, say("title", { title: "Tidy up" }));
    const expires_at = new Date(clock.now() + 60_000).toISOString();
    const input = { path: "/tmp/x", text: "y".repeat(5000) };
    await write(
      "acme",
      child,
      say("approval.requested", { approval_id: "appr_1", call_id: "call_1", tool: "rm", input, expires_at }),
      say("clarify.requested", { clarify_id: "clar_1", question: "Which?", choices: ["a", { b: 1 }] }),
    );
    const of = { run_id: child, root_id, session_id: "sess_shown", title: "Tidy up", prompt_preview: "go" };
    const shown = (await inboxOf("acme")).items.filter((item) => item.root_id === root_id);
    expect(shown).toEqual([
      {
        ...of,
        item_id: `${child}/approval/appr_1`,
        kind: "approval",
        request_id: "appr_1",
        asked_at: expect.any(String),
        expires_at,
        call_id: "call_1",
        tool: "rm",
        input_preview: JSON.stringify(input).slice(0, limits.previewCharsMax),
        effect: null,
        description: null,
      },
      {
        ...of,
        item_id: `${child}/clarify/clar_1`,
        kind: "clarify",
        request_id: "clar_1",
        asked_at: expect.any(String),
        expires_at: null,
        call_id: null,
        question: "Which?",
        choices: ["a", '{"b":1}'],
      },
    ]);
    await as("acme", "POST", runPath(root_id, "abort"), {});
    expect((await inboxOf("acme")).items.filter((item) => item.root_id === root_id)).toEqual([]);
  });

  it("shows how an input begins that is too large for the log [RW-INBOX-1]", async () => {
    const run_id = await newRun("acme");
    const input = { command: `rm -rf / # ${"y".repeat(limits.memberBytesMax)}` };
    await write("acme", run_id, say("approval.requested", { approval_id: "appr_1", tool: "shell", input }));
    const [shown] = (await inboxOf("acme")).items.filter((item) => item.run_id === run_id);
    expect(shown?.input_preview).toBe(JSON.stringify(input).slice(0, limits.previewCharsMax));
    await as("acme", "POST", runPath(run_id, "abort"), {});
  });

  it("shows what a run was asked when it asked, whatever it is asked later [RW-INBOX-2]", async () => {
    const run_id = await newRun("acme", { planning_gate: "required" });
    const keeper = new Keeper("ndjson", "acme");
    await keeper.open();
    const ask = say("clarify.requested", { clarify_id: "clar_1", question: "Which?" });
    const plan = say("plan.proposal", { plan: { id: "plan_1", steps: [] } });
    await write("acme", run_id, ask, plan);
    await write(
      "acme",
      run_id,
      say("turn.submitted", { messages: [{ role: "user", content: "go elsewhere" }] }),
    );
    await write("acme", run_id, say("clarify.requested", { clarify_id: "clar_2", question: "And then?" }));
    const { pos, items } = await inboxOf("acme");
    expect(await keeper.reach(pos)).toEqual(items);
    const previews = items.flatMap((item) => (item.run_id === run_id ? [item.prompt_preview] : []));
    expect(previews).toEqual(["go", "go", "go elsewhere"]);
    keeper.stop();
    await as("acme", "POST", runPath(run_id, "abort"), {});
  });

  it("begins anew for a cursor that is not kept, and says so [RW-INBOX-2]", async () => {
    for (const wire of ["sse", "ndjson"] as const) {
      for (const after of ["999999", "x"]) {
        const path = `/v1/agent/inbox/stream?after=${after}`;
        const reading = await openReading(wire, server.url, path, bearer("acme"));
        await reading.until(({ heard }) => heard.length === 1);
        const [first] = reading.heard;
        expect(JSON.parse(first?.data ?? "{}")).toMatchObject({ type: "snapshot", reset: true });
        if (wire === "sse") expect(first?.event).toBe("snapshot");
        reading.stop();
      }
    }
  });

  it("says nothing of what was erased, also to whoever comes back to where others have read it [RW-INBOX-2]", async () => {
    const { pos: after } = await inboxOf("acme");
    const follower = await openReading("ndjson", server.url, "/v1/agent/inbox/stream", bearer("acme"));
    const run_id = await newRun("acme");
    await write("acme", run_id, say("clarify.requested", { clarify_id: "clar_1", question: "a secret?" }));
    await as("acme", "POST", runPath(run_id, "abort"), {});
    const { pos } = await inboxOf("acme");
    await follower.until(({ heard }) => heard.some(({ data }) => JSON.parse(data).pos === pos));
    const readAgain = async (): Promise<string> => {
      const path = `/v1/agent/inbox/stream?after=${after}`;
      const reading = await openReading("ndjson", server.url, path, bearer("acme"));
      await reading.until(({ heard }) => JSON.parse(heard.at(-1)?.data ?? "{}").pos === pos);
      reading.stop();
      return reading.text;
    };
    expect(await readAgain()).toContain("a secret?");
    expect((await as("acme", "DELETE", `/v1/agent/runs/${run_id}`)).status).toBe(204);
    expect(await readAgain()).not.toContain("secret");
    follower.stop();
    // The same of what is no longer in the tail, and was read from the store.
    expect(await readAgain()).not.toContain("secret");
  });

  it("is opened with a ticket for it, and with no other [RW-INBOX-3]", async () => {
    const ticketFor = async (resource: Facts): Promise<string> =>
      (await as("acme", "POST", "/v1/stream-tickets", resource)).body.ticket as string;
    const open = async (ticket: string): Promise<number> => {
      const reading = await openReading("sse", server.url, `/v1/agent/inbox/stream?ticket=${ticket}`);
      reading.stop();
      return reading.status;
    };
    expect(await open(await ticketFor({ inbox: true }))).toBe(200);
    expect(await open(await ticketFor({ run_list: true }))).toBe(401);
    expect((await call(server.url, "GET", "/v1/agent/inbox")).status).toBe(401);
  });

  it("holds a bounded number of items, the oldest, and says how many there are [RW-INBOX-4]", async () => {
    const { total: before } = await inboxOf("rival");
    const asks = Array.from({ length: limits.inboxItemsMax + 5 }, (_, i) =>
      say("clarify.requested", { clarify_id: `clar_${i}`, question: "?" }),
    );
    const runs = new Set<unknown>();
    for (let from = 0; from < asks.length; from += limits.openRequestsMax) {
      const run_id = await newRun("rival");
      const some = asks.slice(from, from + limits.openRequestsMax);
      expect((await write("rival", run_id, ...some)).status).toBe(200);
      runs.add(run_id);
    }
    const { items, total } = await inboxOf("rival");
    expect([items.length, total]).toEqual([limits.inboxItemsMax, before + asks.length]);
    expect(items.filter((item) => runs.has(item.run_id)).map((item) => item.request_id)).toEqual(
      asks.slice(0, limits.inboxItemsMax - before).map((_, i) => `clar_${i}`),
    );
    const few = (await as("rival", "GET", "/v1/agent/inbox?limit=2")).body;
    expect([(few.items as Facts[]).length, few.total]).toEqual([2, total]);
    const keeper = new Keeper("sse", "rival");
    await keeper.open();
    expect(await keeper.reach(0)).toHaveLength(limits.inboxItemsMax);
    keeper.stop();
  });
});
