// One generator per event type. `payloads` is typed by the protocol's own table, so a new type does not
// compile until it is generated here; every payload also carries members that the protocol does not know.

import {
  type Draft,
  type Event,
  type EventType,
  factFamilies,
  isCore,
  type NamedType,
  type Payloads,
  planIntents,
  runStates,
  type Scope,
} from "@runwire/protocol";
import fc from "fast-check";
import { arbitraryFacts, arbitraryJson, arbitraryText, throughJson } from "./arbitrary-json.js";

const idLetters = [..."0123456789ABCDEFGHJKMNPQRSTVWXYZ"];
const ulid = fc
  .tuple(
    fc.constantFrom("0", "7"),
    fc.string({ unit: fc.constantFrom(...idLetters), minLength: 25, maxLength: 25 }),
  )
  .map((parts) => parts.join(""));

/** Any id that a caller may choose, from one letter to 128. */
export const arbitraryId: fc.Arbitrary<string> = fc.oneof(
  ulid.map((tail) => `call_${tail}`),
  fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/),
  fc.constantFrom("constructor", "toString", "0", "a:b.c-d_e"),
);

export const arbitraryTime: fc.Arbitrary<string> = fc
  .date({ min: new Date(0), max: new Date("9999-12-31T23:59:59.999Z"), noInvalidDate: true })
  .map((date) => date.toISOString());

export const arbitraryScope: fc.Arbitrary<Scope> = fc.dictionary(
  fc.oneof(
    fc.constantFrom("session_id", "turn_id", "trace_id", "constructor"),
    fc.stringMatching(/^[a-z][a-z0-9_]{0,15}$/),
  ),
  arbitraryId,
  { maxKeys: 4, noNullPrototype: true },
);

const count = fc.nat(Number.MAX_SAFE_INTEGER);
const amount = fc.double({ min: 0, noNaN: true, noDefaultInfinity: true });
const texts = fc.array(arbitraryText, { maxLength: 3 });
const nullable = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null });

/** The members a type knows, `required` of them always there, among others that it does not know. */
function members<M extends object, K extends keyof M>(
  known: { [name in keyof M]: fc.Arbitrary<M[name]> },
  ...required: K[]
) {
  return fc
    .tuple(arbitraryFacts, fc.record<M, K>(known, { requiredKeys: required, noNullPrototype: true }))
    .map(([others, own]) => throughJson({ ...others, ...own }));
}

const delta = members({ text: arbitraryText, call_id: arbitraryId }, "text");

const step = members(
  {
    id: arbitraryId,
    title: arbitraryText,
    intent: fc.constantFrom(...planIntents),
    est_tools: texts,
    est_cost_usd: amount,
  },
  "id",
  "title",
);

const plan = members(
  {
    id: arbitraryId,
    run_id: arbitraryId,
    steps: fc.array(step, { maxLength: 3 }),
    est_total_cost_usd: amount,
  },
  "id",
  "steps",
);

const failure = fc.oneof(
  fc.constantFrom("KAI-TOOL-RUN-0001", "KAI-TOOL-INTERRUPTED-0001"),
  members({ code: arbitraryText, message: arbitraryText }, "code"),
  fc.constant(null),
);

export const arbitraryPayloads: { readonly [T in NamedType]: fc.Arbitrary<Payloads[T]> } = {
  "reasoning.delta": delta,
  "text.delta": delta,
  "tool.start": members(
    { call_id: arbitraryId, tool: arbitraryText, input: arbitraryJson, skill_id: arbitraryText },
    "call_id",
    "tool",
  ),
  "tool.end": members(
    {
      call_id: arbitraryId,
      ok: fc.boolean(),
      output: arbitraryJson,
      error: failure,
      duration_ms: amount,
      blob_ref: arbitraryText,
    },
    "call_id",
    "ok",
  ),
  "step.boundary": members(
    {
      step_index: count,
      step_kind: fc.constantFrom("plan", "tool-roundtrip", "text-only", "fan-out", "fan-in", "done"),
      checkpoint_id: arbitraryId,
    },
    "step_index",
    "step_kind",
  ),
  "child.spawn": members({ child_id: arbitraryId, prompt: arbitraryText, tools_allowed: texts }, "child_id"),
  "plan.proposal": members({ plan }, "plan"),
  "run.lifecycle": members(
    { state: fc.constantFrom(...runStates), reason: nullable(arbitraryText), dropped_count: count },
    "state",
  ),

  "message.settled": members({ text: arbitraryText, message_id: arbitraryId }, "text"),
  "message.interim": members({ text: arbitraryText }, "text"),
  title: members({ title: arbitraryText }, "title"),
  suggestions: members({ suggestions: texts }, "suggestions"),

  "tool.call": members({ call_id: arbitraryId, tool: arbitraryText }, "call_id", "tool"),
  "tool.args.delta": delta,
  "tool.output": delta,

  "approval.requested": members(
    { approval_id: arbitraryId, call_id: arbitraryId, expires_at: nullable(arbitraryTime) },
    "approval_id",
  ),
  "approval.resolved": members(
    { approval_id: arbitraryId, decision: arbitraryText, reason: nullable(arbitraryText) },
    "approval_id",
    "decision",
  ),
  "clarify.requested": members(
    { clarify_id: arbitraryId, question: arbitraryText, expires_at: nullable(arbitraryTime) },
    "clarify_id",
    "question",
  ),
  "clarify.resolved": members({ clarify_id: arbitraryId, answer: arbitraryJson }, "clarify_id"),
  "steer.accepted": members({ text: arbitraryText }, "text"),
  "steer.delivered": members({ text: arbitraryText }, "text"),
  "steer.leftover": members({ text: arbitraryText }, "text"),
  "control.requested": members({ action: arbitraryText }, "action"),

  "model.requested": arbitraryFacts,
  "model.completed": arbitraryFacts,
  "model.failed": arbitraryFacts,
  "reasoning.summary": arbitraryFacts,
  usage: arbitraryFacts,

  "node.enter": arbitraryFacts,
  "node.exit": arbitraryFacts,
  "state.values": arbitraryFacts,
  "state.updates": arbitraryFacts,
  checkpoint: arbitraryFacts,
  "tot.expand": arbitraryFacts,
  "tot.evaluate": arbitraryFacts,
  "tot.backtrack": arbitraryFacts,
  "got.plan": arbitraryFacts,
  "got.node_start": arbitraryFacts,
  "got.node_complete": arbitraryFacts,
  "got.node_failed": arbitraryFacts,
  "got.expand": arbitraryFacts,

  "turn.submitted": arbitraryFacts,
  "turn.started": arbitraryFacts,
  "turn.completed": arbitraryFacts,
  "turn.failed": arbitraryFacts,
  "process.output": members({ text: arbitraryText, process_id: arbitraryId, call_id: arbitraryId }, "text"),
  "audio.delta": members({ chunks: texts }, "chunks"),
  custom: arbitraryFacts,
};

export const namedTypes = Object.keys(arbitraryPayloads) as readonly NamedType[];

const familyType = fc
  .tuple(
    fc.constantFrom(...factFamilies),
    fc.array(fc.stringMatching(/^[a-z][a-z0-9_]{0,63}$/), { minLength: 1, maxLength: 3 }),
  )
  .map(([family, names]) => [family, ...names].join("."))
  .filter((type) => !Object.hasOwn(arbitraryPayloads, type));

const vendorType = fc
  .array(fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/), { minLength: 2, maxLength: 5 })
  .map((names) => ["x", ...names].join("."));

/** Types that have no name of their own: `task.created`, `x.acme.thing`. */
export const arbitraryOpenType = fc.oneof(familyType, vendorType) as fc.Arbitrary<EventType>;

/** Drafts of one type. */
export function arbitraryDraftOf<T extends EventType>(type: T): fc.Arbitrary<Draft> {
  const payload: fc.Arbitrary<object> = arbitraryPayloads[type as NamedType] ?? arbitraryFacts;
  return fc.record(
    { type: fc.constant(type), payload, child_id: nullable(arbitraryId), scope: arbitraryScope },
    { requiredKeys: ["type", "payload"], noNullPrototype: true },
  ) as fc.Arbitrary<Draft>;
}

/** Drafts of every type: named, of an open family, and of a vendor. */
export const arbitraryDraft: fc.Arbitrary<Draft> = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...namedTypes).chain(arbitraryDraftOf) },
  { weight: 1, arbitrary: arbitraryOpenType.chain(arbitraryDraftOf) },
);

/** Events as a store gives them, each for itself: their numbers are any numbers. */
export const arbitraryEvent: fc.Arbitrary<Event> = fc
  .record({
    draft: arbitraryDraft,
    id: ulid.map((tail) => `evt_${tail}`),
    ts: arbitraryTime,
    run_id: arbitraryId,
    pos: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    seq: count,
  })
  .map(({ draft, id, ts, run_id, pos, seq }) => {
    const { type, payload, child_id = null, scope } = draft;
    const event = {
      id,
      ts,
      type,
      run_id,
      child_id,
      pos,
      seq: isCore(type) ? Math.max(seq, 1) : seq,
      payload,
    };
    return scope === undefined ? event : { ...event, scope };
  });
