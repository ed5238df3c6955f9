// What a run and all below it may cost. It is looked at before a model is asked, against what the tree's log has counted:
// what is on its way then may go over it. Of a tree it is told once that the budget runs low, and once that it is used up,
// whichever of its runs notices: a number under which the log stores a draft once sees to that.

import type { Draft } from "@runwire/protocol";
import type { RunKey } from "@runwire/server";
import type { Loop } from "./loop.js";
import type { Model } from "./model.js";
import { costOf } from "./prices.js";

/** The part of a budget from which on it is low. */
const lowFrom = 0.8;

const nothingUsed = { input_tokens: 0, output_tokens: 0, reasoning_tokens: 0, cached_tokens: 0 };

/** Only what has a price can be kept within a budget. */
export function hasPrice(model: Model): boolean {
  return costOf(model, nothingUsed) !== null;
}

/** Throws where the budget is used up: then the run ends, and says why. */
export async function keepToBudget(loop: Loop): Promise<void> {
  const { budget_usd } = loop.given;
  if (budget_usd === null) return;
  const spent_usd = await spentOf(loop);
  if (spent_usd < budget_usd * lowFrom) return;
  const facts = { budget_usd, spent_usd };
  await once(loop, 1, { type: "quota.low", payload: { ...facts, threshold: lowFrom } });
  if (spent_usd < budget_usd) return;
  await once(loop, 2, { type: "quota.blocked", payload: facts });
  throw new Error(`the budget is used up: ${usd(spent_usd)} of ${usd(budget_usd)} spent`);
}

/** What comes beside the answer is not asked for any longer. */
export async function isUsedUp(loop: Loop): Promise<boolean> {
  const { budget_usd } = loop.given;
  return budget_usd !== null && (await spentOf(loop)) >= budget_usd;
}

/** The head of the tree counts what all of its runs have used. */
async function spentOf({ host, run, record }: Loop): Promise<number> {
  return (await host.head(rootOf(run, record.root_id)))?.usage.cost_usd ?? 0;
}

async function once({ host, run, record }: Loop, seq: number, draft: Draft): Promise<void> {
  await host.writer.append(rootOf(run, record.root_id), [draft], { id: "runwire.budget", epoch: 1, seq });
}

function rootOf({ tenant }: RunKey, run_id: string): RunKey {
  return { tenant, run_id };
}

function usd(amount: number): string {
  return `$${Number(amount.toPrecision(3))}`;
}
