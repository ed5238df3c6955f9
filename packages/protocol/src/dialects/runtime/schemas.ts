// The shapes of the runtime event stream as JSON Schemas, made of the same tables that the validator walks through.

import { camelId, scopeIds } from "./ids.js";
import { runtimeTypePattern, strictSchemaVersion, typeCharsMax } from "./types.js";

type Schema = { readonly [keyword: string]: unknown };

/** Members of a message that are objects, where they are there. */
export const objectMembers =
  `refs task taskAttempt taskRelationship taskGraph taskProgress taskAcceptance worker
  deliveryState permissionDecision sandboxProfile routingDecision candidateModelSet taskProfile limitState limitEvent
  costState hookRun executionEnvironment channel job jobItem output historyBoundary telemetry correlation`.split(
    /\s+/,
  );

/** Members that are texts, ids among them, and never empty. */
export const textMembers: readonly string[] = [
  "schemaVersion",
  "streamId",
  "childId",
  "derivedFrom",
  "nativeStatus",
  "status",
  "phase",
  "statusReason",
  "outputRef",
  ...scopeIds.map((name) => camelId[name]),
];

export const timestampPattern =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

export interface Need {
  readonly rule: string;
  readonly of: RegExp;
  readonly members: readonly string[];
}

/** What the strict profile asks of a message by its type. The catalog of tools belongs to the turn, and to no call. */
export const strictNeeds: readonly Need[] = [
  { rule: "RT-STRICT-2", of: /^/, members: ["runtimeId", "sessionId", "sequence"] },
  { rule: "RT-STRICT-4", of: /^thread\./, members: ["threadId"] },
  {
    rule: "RT-STRICT-5",
    of: /^(?:turn|model|reasoning|tool|action|permission|sandbox|hook|context|routing|cost|rate_limit|quota)\./,
    members: ["threadId", "turnId"],
  },
  { rule: "RT-STRICT-6", of: /^tool\.(?!catalog\.resolved$)/, members: ["stepId", "toolCallId"] },
  { rule: "RT-STRICT-7", of: /^action\./, members: ["actionId"] },
  { rule: "RT-STRICT-8", of: /^task\./, members: ["taskId"] },
  { rule: "RT-STRICT-9", of: /^task\.attempt\./, members: ["runId"] },
  { rule: "RT-STRICT-10", of: /^subagent\./, members: ["subagentId"] },
  { rule: "RT-STRICT-11", of: /^evidence\.changed$/, members: ["evidenceId"] },
];

const threadStatuses = "idle queued running blocked completed failed cancelled stale unknown".split(" ");

export const taskStatuses =
  `draft accepted queued preparing running waiting_input waiting_permission waiting_resource
  blocked paused retrying cancelling cancelled timed_out failed lost completed archived stale unknown`.split(
    /\s+/,
  );

const text: Schema = { type: "string", minLength: 1 };
const count: Schema = { type: "integer", minimum: 0 };
const dialect = "https://json-schema.org/draft/2020-12/schema";

const event: Schema = {
  $schema: dialect,
  title: "A message of the runtime event stream",
  type: "object",
  required: ["type", "eventId", "timestamp"],
  properties: {
    type: { type: "string", maxLength: typeCharsMax, pattern: runtimeTypePattern.source },
    eventId: text,
    timestamp: { type: "string", pattern: timestampPattern.source },
    sequence: count,
    ...Object.fromEntries(textMembers.map((name) => [name, text])),
    ...Object.fromEntries(objectMembers.map((name) => [name, { type: "object" }])),
    payload: {},
  },
};

const strict: Schema = {
  ...event,
  title: "A message of the runtime event stream, strict",
  required: ["type", "eventId", "timestamp", "schemaVersion", "payload"],
  properties: {
    ...(event.properties as Schema),
    schemaVersion: { const: strictSchemaVersion },
    payload: { type: "object" },
  },
  allOf: strictNeeds.map(({ of, members }) => ({
    if: { properties: { type: { pattern: of.source } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: { required: members },
  })),
};

const listOf = (required: readonly string[], properties: Schema = {}): Schema => ({
  type: "array",
  items: {
    type: "object",
    required,
    properties: { ...Object.fromEntries(required.map((name) => [name, text])), ...properties },
  },
});

const attempts: Schema = { type: "array", items: { type: "object" } };
const tasks = listOf(["taskId"], { status: { enum: taskStatuses }, attempts });

const snapshot: Schema = {
  $schema: dialect,
  title: "The read model of a session",
  type: "object",
  required: ["schemaVersion", "sessionId", "threads"],
  properties: {
    schemaVersion: text,
    sessionId: text,
    streamId: text,
    lastSequence: count,
    tasks,
    threads: listOf(["threadId", "status"], {
      status: { enum: threadStatuses },
      activeTurnId: text,
      turns: listOf(["turnId"]),
      tasks,
      actions: listOf(["actionId"]),
      toolCalls: listOf(["toolCallId"]),
      processes: listOf(["processId"]),
      incidents: attempts,
      pendingRequests: { type: "array" },
      queuedTurns: { type: "array" },
    }),
  },
};

/** By the name of their files. */
export const runtimeSchemas: { readonly [name: string]: Schema } = {
  "runtime-event": event,
  "runtime-event-strict": strict,
  "runtime-snapshot": snapshot,
};
