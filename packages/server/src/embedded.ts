// What a program that starts the gateway in its own process can do without a socket: write runs and follow them. Both go
// the ways that requests go; there is only nobody to be let in.

import {
  type Draft,
  dialects,
  isRunId,
  type Message,
  type RunState,
  RunwireError,
  runwire,
} from "@runwire/protocol";
import type { z } from "zod";
import { checkFit } from "./http/body.js";
import { badParam, checkBody } from "./http/check.js";
import { idempotencyFor } from "./http/idempotency.js";
import type { Appended, ProducerClaim } from "./log/accept.js";
import { checkExternal } from "./log/head.js";
import type { Rooms } from "./rooms.js";
import { checkClaim, draftReader } from "./routes/append.js";
import { beginAsked, newRun } from "./routes/runs.js";
import { type FollowOptions, followRun, tenantNamed } from "./transports/in-process.js";
import { readableHead } from "./transports/open.js";

/** The body of `POST /v1/agent/runs`. */
export type NewRunBody = z.input<typeof newRun>;

/** Whose run it is: `default`, the tenant of an open server, unless told otherwise. */
export interface Whose {
  readonly tenant?: string;
}

export interface Embedded {
  /** Under an idempotency key that was used before, the run that was made then. */
  createRun(
    run: NewRunBody,
    of?: Whose & { readonly idempotencyKey?: string },
  ): Promise<{ readonly run_id: string; readonly session_id: string; readonly state: RunState }>;
  /** All or nothing, durable when it resolves. With a claim, what is stored already is skipped. */
  append(
    run_id: string,
    drafts: readonly Draft[],
    of?: Whose & { readonly claim?: ProducerClaim },
  ): Promise<Appended>;
  /** The same in the words of another dialect. */
  appendIn(dialect: string, run_id: string, messages: readonly unknown[], of?: Whose): Promise<Appended>;
  /** Renews the lease of a run whose writer has nothing to say; an append does so too. */
  heartbeat(
    run_id: string,
    of?: Whose,
  ): Promise<{ readonly state: RunState | null; readonly lease_ms: number }>;
  follow(options: FollowOptions): AsyncGenerator<Message, void>;
}

export function embedded(rooms: Rooms): Embedded {
  const { settings, ingest, quotas, store, connections } = rooms;

  async function appendAll(
    run_id: string,
    values: readonly unknown[],
    dialectName: string,
    { claim, ...of }: Whose & { readonly claim?: ProducerClaim },
  ): Promise<Appended> {
    stays();
    const tenant = tenantNamed(of.tenant);
    if (!isRunId(run_id)) throw new RunwireError("KAI-RUN-MISSING-0001");
    const dialect = dialects.get(dialectName);
    if (dialect === undefined) throw badParam("`dialect`", `takes ${[...dialects.keys()].join(", ")}`);
    if (claim !== undefined) checkClaim(claim);
    if (values.length === 0) throw new RunwireError("KAI-REQUEST-BODY-0001", "it holds no event");
    if (values.length > settings.batchEventsMax)
      throw new RunwireError("KAI-REQUEST-SIZE-0001", `a batch may have ${settings.batchEventsMax} events`);
    quotas.appending(tenant, values.length);
    const read = await draftReader(rooms, { tenant, run_id }, dialect, claim);
    const drafts = values.flatMap((value, i) => read(value, `event ${i + 1}`));
    return ingest.append({ tenant, run_id }, drafts, claim);
  }

  function stays(): void {
    if (connections.leaving) throw new RunwireError("KAI-STREAM-LEAVING-0001");
  }

  return {
    async createRun(given, { idempotencyKey, ...of } = {}) {
      stays();
      const tenant = tenantNamed(of.tenant);
      checkFit(given, settings);
      const body = checkBody(newRun, given);
      const idempotency = idempotencyFor(idempotencyKey, body);
      const { body: made } = await beginAsked(rooms, tenant, body, idempotency);
      const { run_id, session_id, state } = made;
      return { run_id, session_id, state };
    },
    append: (run_id, drafts, of = {}) => appendAll(run_id, drafts, runwire.name, of),
    appendIn: (dialect, run_id, messages, of = {}) => appendAll(run_id, messages, dialect, of),
    async heartbeat(run_id, of = {}) {
      stays();
      const key = { tenant: tenantNamed(of.tenant), run_id };
      const head = await readableHead(rooms, key);
      checkExternal(head);
      const { state, run } = head;
      store.renew(key);
      return { state, lease_ms: run.lease_ms };
    },
    follow: (options) => followRun(rooms, options),
  };
}
