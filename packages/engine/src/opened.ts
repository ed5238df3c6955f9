// What a call has begun and not ended, as the log has it. A crash leaves it so; whoever closes the call closes that too.

import type { Draft, Event, Facts } from "@runwire/protocol";
import { factOf } from "./telling.js";

export interface Opened {
  readonly kind: "process" | "hook";
  readonly id: string;
  /** What was told when it began. */
  readonly facts: Facts;
}

const ends: ReadonlySet<string> = new Set(["completed", "failed", "terminated"]);

export function openAfter(open: readonly Opened[], { type, payload, scope }: Event): readonly Opened[] {
  const [kind, name = ""] = type.split(".");
  if (kind !== "process" && kind !== "hook") return open;
  const facts = payload as Facts;
  const id = kind === "process" ? scope?.process_id : facts.hook_id;
  if (typeof id !== "string") return open;
  const others = open.filter((one) => one.kind !== kind || one.id !== id);
  if (name === "started") return [...others, { kind, id, facts }];
  return ends.has(name) ? others : open;
}

/** The ends of what nobody will hear of again. */
export function lost(call_id: string, open: readonly Opened[], reason: "lost" | "aborted"): readonly Draft[] {
  return open.map(({ kind, id, facts }) =>
    kind === "process"
      ? factOf(call_id, "process.terminated", { signal: null, reason }, { process_id: id })
      : factOf(call_id, "hook.failed", { ...facts, reason }),
  );
}
