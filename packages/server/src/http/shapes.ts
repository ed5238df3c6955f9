// What bodies and answers look like, once: requests are checked with these, the documents are made from them.
// Answers may gain members; those named here stay.

import { idPattern, limits, runStates } from "@runwire/protocol";
import { z } from "zod";

export const id = z
  .string()
  .regex(idPattern, { error: "must be an id (letters, digits, `_.:-`, at most 128)" })
  .meta({ examples: ["run_01KA2Z5J8Q0000000000000000"] });
const objects = z.record(z.string(), z.unknown());
export const facts = objects.describe("any JSON object");
/** Bounded, because what is wrong with a list is found item by item, and all of it before the first is told. */
export const listOf = <T extends z.ZodType>(item: T) => z.array(item).max(limits.jsonKeysMax);
/** What somebody says to a run. White space says nothing, and some models refuse to hear it. */
export const words = z.string().regex(/\S/, { error: "must not be blank" });
export const reason = z.string().nullish().describe("why, for those who watch");
const runState = z.enum(runStates);
const time = z.string().meta({ format: "date-time" });

export const json = <T extends z.ZodType>(schema: T) => ({ "application/json": schema });

/** An answer without members that anyone should count on but these. */
export const members = (shape: z.ZodRawShape) => z.looseObject(shape);

export const ordered = members({ run_id: id, state: runState });

export const created = members({
  run_id: id,
  session_id: z.string(),
  state: runState,
  stream_url: z.string(),
});

export const forkedFrom = members({
  run_id: id,
  pos: z.number(),
  seq: z.number(),
  checkpoint_id: id.optional(),
  workspace_from: id.optional().describe("the checkpoint that its workspace was restored from"),
});

export const runSummary = members({
  run_id: id,
  session_id: z.string().nullable(),
  agent: z.string().nullable(),
  state: runState,
  reason: z.string().nullable(),
  title: z.string().nullable(),
  prompt_preview: z.string().nullable().describe("the first 100 characters of what was asked"),
  model: z.string().nullable().describe("the one that was asked for"),
  created_at: time,
  ended_at: time.nullable(),
  parent_id: id.nullable(),
  root_id: id,
  planning_gate: z.enum(["off", "preview", "required"]),
  plan_id: z.string().nullable(),
  forked_from: forkedFrom.nullable(),
  counts: z.record(z.string(), z.number()),
  usage: z.record(z.string(), z.number()),
  cost: members({ usd: z.number().nullable(), known: z.boolean() }),
  metadata: facts,
  stream_url: z.string(),
  replay_uri: z.string(),
}).meta({ id: "Run" });

export const inboxItem = members({
  item_id: z.string(),
  kind: z.enum(["approval", "clarify", "plan"]),
  run_id: id,
  root_id: id,
  session_id: z.string().nullable(),
  request_id: z.string().nullable(),
  asked_at: time,
  expires_at: z.string().nullable(),
  title: z.string().nullable(),
  prompt_preview: z.string().nullable().describe("the first 100 characters of what its run was asked"),
}).meta({ id: "InboxItem" });

export const checkpoint = members({
  checkpoint_id: id,
  step_index: z.number(),
  step_kind: z.string(),
  pos: z.number().describe("of the step's end, in the default view"),
  seq: z.number(),
  ts: time,
  bytes: z.number().nullable().describe("what it takes on disk; null where it is not kept"),
  kept: z.boolean().describe("whether a run can begin with its workspace"),
}).meta({ id: "Checkpoint" });

export const event = members({
  id,
  ts: time,
  type: z.string(),
  run_id: id,
  child_id: id.nullable(),
  seq: z.number().int(),
  payload: facts,
}).meta({ id: "Event" });

export const transcript = members({ run_id: z.string(), pos: z.number(), seq: z.number() })
  .describe("what the log adds up to")
  .meta({ id: "Transcript" });

export const error = members({
  error: z.looseObject({ code: z.string(), message: z.string(), retry: z.boolean() }),
}).meta({ id: "Error" });

export const draft = z
  .looseObject({ type: z.string(), payload: facts, child_id: id.nullish() })
  .describe("what a producer says, in the dialect `runwire`")
  .meta({ id: "Draft" });

/** What a dialect says or takes: this in the server's own, any object in the others. */
export const messageOf = <T extends z.ZodType>(own: T) =>
  z.union([own, objects.describe("a message of another dialect")]);

const streamText = z.string();

/** The three ways in which a stream is answered over HTTP. */
export const streamAnswers = {
  200: {
    does: "the stream",
    content: {
      "text/event-stream": streamText.describe("one message a block; `id:` is the cursor"),
      "application/x-ndjson": streamText.describe("one message a line"),
    },
  },
  204: { does: "the run has ended, and the reader has it all" },
};
