// What a run was given to work with, its ancestors' part of it too. A child has no more than each of them had, and finds
// that in their logs; what is begun from a child is in no tree of theirs, and has to be given it.

import type { Facts } from "@runwire/protocol";
import { conversationTo } from "../conversations.js";
import type { Head } from "../log/head.js";
import type { Rooms } from "../rooms.js";
import { askedPos } from "./point.js";

/** `asked` is the run's own. A member that nobody was given is not there. */
export async function inherited({ store }: Rooms, { run }: Head, asked: Facts): Promise<Facts> {
  const all = [asked];
  for (let run_id = run.parent_id; run_id !== null; ) {
    const key = { tenant: run.tenant, run_id };
    all.push((await conversationTo(store, key, askedPos, () => false)).conversation.asked);
    run_id = (await store.head(key))?.run.parent_id ?? null;
  }
  const nearest = (member: string): unknown => all.find((one) => one[member] != null)?.[member];
  const given: Facts = {
    model: nearest("model"),
    fallback_models: nearest("fallback_models"),
    budget_usd: all.at(-1)?.budget_usd,
    got_adaptive: asked.got_adaptive,
    tools: all
      .map(({ tools }) => tools)
      .filter(isStrings)
      .reduce<readonly string[] | undefined>(inBoth, undefined),
    approvals: byStrictness.find((approvals) => all.some((one) => one.approvals === approvals)),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

const byStrictness = ["always", "destructive", "never"];

/** Patterns for the tools that both lists allow. */
function inBoth(a: readonly string[] | undefined, b: readonly string[]): readonly string[] {
  if (a === undefined) return b;
  const isIn = (list: readonly string[], tool: string): boolean =>
    list.some((one) => one === tool || (/(?:^|\.)\*$/.test(one) && tool.startsWith(one.slice(0, -1))));
  return [...new Set([...a.filter((tool) => isIn(b, tool)), ...b.filter((tool) => isIn(a, tool))])];
}

function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
