// The words of the runtime event stream: what a message is, and which types its standard names.

/** A message as it stands in JSON. Only `type`, `eventId` and `timestamp` must be there. */
export interface RuntimeMessage {
  readonly type: string;
  readonly eventId: string;
  readonly timestamp: string;
  readonly schemaVersion?: string;
  /** Counts the messages of one stream, from 1. */
  readonly sequence?: number;
  /** The run whose log this stream says. */
  readonly streamId?: string;
  readonly payload?: unknown;
  readonly [member: string]: unknown;
}

/** The version of the schemas that this encoder's messages keep to. */
export const runtimeSchemaVersion = "0.4.0";

/** What a strict reader wants to be told instead. */
export const strictSchemaVersion = "lime-profile-0.4.0";

/** Who says so, where nobody else is known to. */
export const runtimeId = "runwire";

const names: { readonly [family: string]: string } = {
  session: "created updated",
  thread: "started updated",
  turn: "submitted started completed failed",
  task: `created accepted queued started updated progress waiting blocked paused resumed retrying cancel_requested
    cancelled timed_out failed lost completed archived profile.resolved delegated dependency.updated attempt.started
    attempt.completed attempt.failed`,
  run: "status",
  model: "requested delta completed failed",
  reasoning: "delta summary",
  tool: "catalog.resolved started args progress result failed",
  action: "required resolved",
  item: "started updated completed",
  queue: "changed",
  context: "resolved compaction.started compaction.completed compaction.failed",
  artifact: "changed",
  evidence: "changed",
  subagent: "spawned status input completed failed closed",
  limit: "changed",
  snapshot: "updated repaired",
  runtime: "warning error",
  permission: "evaluated requested resolved",
  sandbox: "applied violation",
  hook: "started completed failed",
  policy: "changed",
  process: "started output input completed failed terminated",
  routing: "candidates.resolved decided fallback.applied not_possible single_candidate",
  cost: "estimated recorded",
  rate_limit: "hit",
  quota: "low blocked",
  channel: "connected disconnected resumed message permission_forwarded permission_returned",
  job: `created started progress item.started item.completed item.failed completed failed cancelled`,
  output: "spilled truncated redacted expired",
  history: "window.loaded reconstructed rollback.started rollback.completed",
};

/** Every type of the standard; others are kept and passed on. */
export const runtimeTypes: readonly string[] = Object.entries(names).flatMap(([family, list]) =>
  list.split(/\s+/).map((name) => `${family}.${name}`),
);

/** `task.created`, `x.acme.score`: names with a dot between them. */
export const runtimeTypePattern = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+$/;

export const typeCharsMax = 256;
