// The bridge: the runs of one tenant on NATS subjects, until it is told to leave. It holds nothing that is not on one of
// the two sides, so it may be killed at any moment.

import { type Endpoint, gateway, systemClock, wait } from "@runwire/client";
import { RunwireError } from "@runwire/protocol";
import { connectNats, type NatsFlags } from "./connect.js";
import { keptBy } from "./jetstream.js";
import { answerRequests } from "./requests.js";
import { publishRuns } from "./runs.js";
import { subjectsOf } from "./subjects.js";

export interface BridgeOptions extends NatsFlags {
  readonly dialect: string;
  readonly prefix: string;
  readonly stream: string | undefined;
  readonly ingest: boolean;
  readonly signal: AbortSignal;
  say(line: string): void;
  /** Called once it is at work. */
  ready(line: string): void;
}

const againMs = 2000;

export async function bridge(endpoint: Endpoint, options: BridgeOptions): Promise<void> {
  const { dialect, prefix, ingest, signal, say } = options;
  const connected = await connectNats(options, say, signal);
  try {
    const tenant = await tenantOf(endpoint, options);
    const subjects = subjectsOf(prefix, tenant, dialect);
    const kept = await keptBy({ prefix, subjects, connected, signal, say, stream: options.stream });
    const where = kept.stream === undefined ? "not kept by JetStream" : `kept by stream ${kept.stream}`;
    const ready = (): void =>
      options.ready(`publishing runs of ${tenant} on ${subjects.allEvents}, ${where}`);
    const ended = new AbortController();
    const answering = answerRequests({
      ...{ endpoint, nc: connected.nc, prefix, dialect, subjects, ingest, say },
      clock: systemClock,
      signal: AbortSignal.any([signal, ended.signal]),
    });
    const publish = async (): Promise<void> => {
      await connected.nc.flush();
      await publishRuns({ ...kept, endpoint, dialect, subjects, signal, now: systemClock.nowMs, say, ready });
    };
    const publishing = publish();
    try {
      await Promise.race([answering.then(() => publishing), publishing]);
    } finally {
      // What was taken from NATS is nowhere else.
      ended.abort();
      await answering.catch(() => {});
    }
  } finally {
    // What waits goes out; a server that is away is not waited for.
    await (connected.nc.isClosed() ? undefined : connected.nc.close());
  }
}

/** A server that is away is waited for; one that refuses is not. */
async function tenantOf(endpoint: Endpoint, { say, signal }: BridgeOptions): Promise<string> {
  for (let isFirst = true; ; isFirst = false) {
    try {
      return (await gateway(endpoint).whoAmI()).tenant;
    } catch (error) {
      if (!(error instanceof RunwireError) || !error.row.retry) throw error;
      if (isFirst) say(`the server at ${endpoint.base} is away [${error.code}]; waiting for it`);
      await wait(systemClock, againMs, signal);
    }
  }
}
