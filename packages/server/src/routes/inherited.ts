// What a run was given to work with, its ancestors' part of it too. A child finds that in their logs; what is begun from
// a child is in no tree of theirs, and has to be given it.

import { type Facts, givenBy, namedByAll } from "@runwire/protocol";
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
  const { model, fallbacks, tools, approvals, budget_usd } = givenBy(all);
  return {
    ...(model === null ? {} : { model }),
    ...(fallbacks === null ? {} : { fallback_models: fallbacks }),
    ...(tools.length === 0 ? {} : { tools: namedByAll(tools) }),
    ...(all.every((one) => one.approvals == null) ? {} : { approvals }),
    ...(budget_usd === null ? {} : { budget_usd }),
    ...(asked.got_adaptive === undefined ? {} : { got_adaptive: asked.got_adaptive }),
  };
}
