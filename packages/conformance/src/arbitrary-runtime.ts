// Messages of the runtime event stream as anyone may send them: every type of the standard, vendors' and unknown ones,
// ids in either spelling, payloads that look like those of the log's own types and payloads that look like nothing.

import { type RuntimeMessage, runtimeTypes } from "@runwire/protocol";
import fc from "fast-check";
import { arbitraryId, arbitraryPayloads, arbitraryTime } from "./arbitraries.js";
import { arbitraryFacts, arbitraryJson, arbitraryText, throughJson } from "./arbitrary-json.js";

const idNames = [
  "sessionId",
  "threadId",
  "turnId",
  "taskId",
  "runId",
  "attemptId",
  "stepId",
  "toolCallId",
  "actionId",
  "subagentId",
  "artifactId",
  "evidenceId",
  "processId",
  "channelId",
  "traceId",
  "spanId",
] as const;

const ids = fc.dictionary(
  fc.constantFrom(...idNames, "turn_id", "tool_call_id", "artifact_id"),
  fc.oneof({ weight: 6, arbitrary: arbitraryId }, fc.constantFrom("thread/1", "an id", "🙂")),
  { maxKeys: 6, noNullPrototype: true },
);

/** Words that decide what a message is taken for. */
const words = fc.constantFrom(
  "pending",
  "running",
  "ended",
  "paused",
  "completed",
  "failed",
  "cancelled",
  "preparing",
  "waiting_permission",
  "planning",
  "plan_approval",
  "redirecting",
  "output",
  "approval",
  "clarify",
  "todo",
  "agent_message",
  "once",
);

const known: { readonly [member: string]: fc.Arbitrary<unknown> } = {
  text: arbitraryText,
  toolName: arbitraryText,
  safeArgs: arbitraryJson,
  input_ref: arbitraryText,
  output: arbitraryJson,
  output_ref: arbitraryText,
  preview: arbitraryText,
  metadata: arbitraryFacts,
  durationMs: fc.nat(),
  error: fc.oneof(arbitraryText, fc.constant({ code: "E" }), fc.constant(null)),
  ok: fc.boolean(),
  status: words,
  phase: words,
  stream: words,
  actionType: words,
  itemType: words,
  itemId: arbitraryId,
  decision: words,
  availableDecisions: fc.constantFrom(["once", "session", "always", "deny"], ["yes", "no"], null),
  prompt: arbitraryText,
  expiresAt: fc.oneof(arbitraryTime, fc.constant(null)),
  reason: fc.oneof(arbitraryText, fc.constant(null)),
  title: arbitraryText,
  usage: fc.oneof(arbitraryFacts, fc.nat()),
  plan: fc.oneof(
    arbitraryPayloads["plan.proposal"].map(({ plan }) => plan),
    arbitraryJson,
  ),
  spilled: fc.constantFrom(
    { input: { blob_ref: "blob_1", bytes: 9, media_type: "text/plain", preview: "in" } },
    { output: { blob_ref: "blob_1", bytes: 9, media_type: "text/plain", preview: "out" } },
  ),
  call_id: arbitraryId,
  artifact_id: arbitraryId,
  pack_ref: arbitraryText,
  rest: fc.oneof(arbitraryFacts, arbitraryJson, fc.constant({ payload: 1, type: "task.created" })),
};

const shaped = fc
  .tuple(fc.subarray(Object.keys(known), { maxLength: 8 }), arbitraryFacts)
  .chain(([names, others]) =>
    fc
      .record(Object.fromEntries(names.map((name) => [name, known[name] as fc.Arbitrary<unknown>])))
      .map((chosen) => ({ ...others, ...chosen })),
  );

const payload = fc.oneof({ weight: 5, arbitrary: shaped }, { weight: 1, arbitrary: arbitraryJson });

const others = fc
  .tuple(
    arbitraryFacts,
    fc.record(
      {
        schemaVersion: fc.constantFrom("0.1.0", "0.4.0", "lime-profile-0.4.0"),
        runtimeId: fc.constantFrom("runwire", "acme"),
        childId: fc.oneof(arbitraryId, fc.constant("not an id")),
        streamId: arbitraryId,
        scope: fc.constantFrom({ node_id: "n1" }, { turn_id: "t1" }, {}, "text"),
        refs: arbitraryFacts,
        correlation: arbitraryFacts,
        nativeStatus: arbitraryText,
        native: fc.constantFrom(
          { type: "title", payload: { title: "t" } },
          { type: "tool.start", payload: { call_id: "c", tool: "t", toolName: "u" } },
          { type: "x.a.b", payload: { rest: 5 } },
          7,
        ),
      },
      { requiredKeys: [], noNullPrototype: true },
    ),
    fc.nat(7),
  )
  // Mostly a message has few members that are not of the standard.
  .map(([unknown, named, luck]) => ({ ...(luck < 3 ? unknown : {}), ...(luck % 2 === 0 ? named : {}) }));

const unknownTypes = fc.oneof(
  fc.stringMatching(/^[a-z_]{1,9}(?:\.[a-z_]{1,9}){1,7}$/),
  fc.constantFrom(
    "text.delta",
    "tool.call",
    "run.lifecycle",
    "usage.x",
    "subagent.output",
    "channel.peer_task.linked",
    "x.acme.score",
    "x.runwire.title",
    "x.runwire.step.boundary",
    "x.runtime.tool.started",
    "x.runtime.message",
    "x.y",
  ),
);

const type = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...runtimeTypes) },
  { weight: 1, arbitrary: unknownTypes },
);

/** A well-formed message that is not derived from another. */
export function arbitraryRuntimeMessage(of: fc.Arbitrary<string> = type): fc.Arbitrary<RuntimeMessage> {
  return fc
    .tuple(others, ids, of, arbitraryId, arbitraryTime, fc.nat(), fc.option(payload, { freq: 20 }))
    .map(([members, named, type, eventId, timestamp, sequence, said]) =>
      throughJson({
        ...members,
        ...named,
        type,
        eventId,
        timestamp,
        sequence,
        ...(said === null ? {} : { payload: said }),
      }),
    )
    .filter((message) => !Object.hasOwn(message, "derivedFrom"));
}
