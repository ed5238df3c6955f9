// A root run begins: it is stored, answered for, and handed to the agent where it is the agent's to write.

import type { RunState } from "@runwire/protocol";
import { wrongBody } from "../http/check.js";
import { replayedHeader } from "../http/idempotency.js";
import type { CreatedRun, NewRun } from "../log/roots.js";
import type { ForkedFrom, Idempotency } from "../log/run-record.js";
import type { Rooms } from "../rooms.js";

interface Begun {
  readonly status: 201;
  readonly body: {
    readonly run_id: string;
    readonly session_id: string;
    readonly state: RunState;
    readonly forked_from?: ForkedFrom;
    readonly stream_url: string;
  };
  readonly headers: { readonly [name: string]: string };
}

export async function begin(
  rooms: Rooms,
  tenant: string,
  run: NewRun,
  idempotency: Idempotency | undefined,
): Promise<Begun> {
  const { ingest, agent } = rooms;
  if (!run.external) await checkAgent(rooms, run);
  const made = await ingest.create(tenant, run, idempotency);
  if (!run.external) agent?.take({ tenant, run_id: made.run_id });
  return begun(made);
}

async function checkAgent({ agent }: Rooms, run: NewRun): Promise<void> {
  if (agent === undefined) {
    throw wrongBody(
      'this server has no built-in agent: send `"producer": "external"` and append the events yourself',
    );
  }
  await agent.check({ ...run.asked, agent: run.agent, model: run.model });
}

export function begun(made: CreatedRun): Begun {
  const { run_id, session_id, state, forked_from } = made;
  const stream_url = `/v1/agent/runs/${run_id}/stream`;
  return {
    status: 201,
    body: { run_id, session_id, state, ...(forked_from && { forked_from }), stream_url },
    headers: { Location: `/v1/agent/runs/${run_id}`, ...replayedHeader(made) },
  };
}
