// The fold that heads are: a head and one more record of its log make the next head.

import {
  addedUsage,
  elsewhere,
  type Facts,
  flowOf,
  isFinal,
  type Mine,
  type RunState,
  withMember,
  withoutMember,
} from "@runwire/protocol";
import { nameCharsMax, shownPlan, shownPrompt, textCharsMax, textOf } from "./asked.js";
import { covered, isModelText, pended } from "./groups.js";
import type { Head, Steer } from "./head.js";
import type { Place, ProducerMark, Record } from "./record.js";
import { ask, newRequest, resolve } from "./requests.js";

/** The head after one more record. `payload` is the record's payload, parsed; `mine` is the fold that this is a step of. */
export function advance(head: Head, record: Record, place: Place, payload: () => Facts, mine: Mine): Head {
  const views = {
    default: place.defaultPos === 0 ? head.views.default : { pos: place.defaultPos, seq: place.defaultSeq },
    full: place.fullPos === 0 ? head.views.full : { pos: place.fullPos, seq: place.fullSeq },
  };
  const moved: Moved = { ...head, views, lastId: record.id };
  const { producer } = record;
  if (producer !== null && producer.log === head.run.run_id)
    moved.producers = withProducer(head.producers, producer, mine);
  if (record.by === head.run.run_id) return ownRecord(moved, record, place, payload, mine);
  if (record.type === "usage") return { ...moved, usage: addedUsage(mine, head.usage, payload()) };
  if (
    record.type === "run.lifecycle" &&
    head.children.includes(record.by) &&
    isFinal(payload().state as RunState)
  ) {
    return { ...moved, children: head.children.filter((child) => child !== record.by) };
  }
  return moved;
}

type Moved = { -readonly [K in keyof Head]: Head[K] };

function ownRecord(head: Moved, record: Record, place: Place, payload: () => Facts, mine: Mine): Head {
  const flow = flowOf(record.type);
  if (flow !== "control") {
    // A delta is pending from the full log until the default log's record that covers it.
    const p = payload();
    const isSaid = isModelText(record.type, p);
    if (place.fullPos !== 0) {
      head.groups = pended(head.groups, record, place.fullPos, p);
      head.unsettled ||= isSaid;
      // A try after a failed one has no request of its own.
      if (head.owes === false && flow === "core-delta" && p.call_id == null) head.owes = true;
      return head;
    }
    head.groups = covered(head.groups, record, p);
    head.tickMs = Date.parse(record.ts);
    if (isSaid) head.saidPos = place.defaultPos;
    return head;
  }
  const p = payload();
  switch (record.type) {
    case "run.lifecycle":
      head.state = p.state as RunState;
      head.reason = textOf(p.reason, textCharsMax);
      head.awaiting =
        head.state === "awaiting_approval"
          ? { id: record.id, at: record.ts, prompt_preview: head.prompt_preview }
          : null;
      if (isFinal(head.state)) {
        head.ended_at = record.ts;
        head.plan = null;
      }
      break;
    case "control.requested":
      // What its parent's pause had paused is paused for itself from here on, and no change of the state tells of it.
      if (p.action === "pause" && head.state === "paused") head.reason = textOf(p.reason, textCharsMax);
      break;
    case "turn.submitted":
      // A later one may say only that there is another turn.
      head.prompt_preview = shownPrompt(p) ?? head.prompt_preview;
      head.model = textOf(p.model, nameCharsMax) ?? head.model;
      break;
    case "tool.start":
      head.calls = withMember(mine, head.calls, p.call_id as string, record.ts);
      break;
    case "tool.end":
      head.calls = withoutMember(mine, head.calls, p.call_id as string);
      break;
    case "child.spawn":
      head.children = [...head.children, p.child_id as string];
      break;
    case "approval.requested":
      ask(head, p.approval_id as string, newRequest("approval", p, record, head.prompt_preview), mine);
      break;
    case "clarify.requested":
      ask(head, p.clarify_id as string, newRequest("clarify", p, record, head.prompt_preview), mine);
      break;
    case "approval.resolved":
      resolve(head, "approval", p.approval_id as string, p, mine);
      break;
    case "clarify.resolved":
      resolve(head, "clarify", p.clarify_id as string, p, mine);
      break;
    case "steer.accepted":
      if (typeof p.steer_id === "string") head.steers = [...head.steers, steerIn(p.steer_id, p)];
      break;
    case "steer.delivered":
    case "steer.leftover":
      head.steers = head.steers.filter(({ steer_id }) => steer_id !== p.steer_id);
      break;
    case "message.settled":
      head.unsettled = false;
      head.saidPos = place.defaultPos;
      break;
    case "plan.proposal":
      head.plan = shownPlan(p.plan);
      head.plan_id = head.plan.plan_id;
      break;
    case "step.boundary":
      head.steps += 1;
      break;
    case "title":
      head.title = p.title as string;
      break;
    case "usage":
      head.usage = addedUsage(mine, head.usage, p);
      head.owes &&= false;
      break;
    case "model.requested":
      // What outside producers pay is theirs to tell.
      if (head.run.external) break;
      head.payee = { model: String(p.model), provider: String(p.provider), isFree: p.free === true };
      head.owes = true;
      break;
    case "model.failed":
      head.owes &&= false;
      break;
    default:
      break;
  }
  return head;
}

function steerIn(steer_id: string, p: Facts): Steer {
  const where = elsewhere(p, "text");
  return { steer_id, text: p.text as string, ...(where === undefined ? {} : { spilled: { text: where } }) };
}

export function withProducer(
  producers: Head["producers"],
  { id, epoch, seq }: ProducerMark,
  mine: Mine,
): Head["producers"] {
  return withMember<Head["producers"][string]>(mine, producers, id, { epoch, seq });
}
