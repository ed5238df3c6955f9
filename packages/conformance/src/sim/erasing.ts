// What is erased while its server is killed and its disk is full: it is gone for good, and it was never there for others.

import { createHash } from "node:crypto";
import { type Draft, limits, RunwireError } from "@runwire/protocol";
import { own, produce, story } from "./producing.js";
import type { World } from "./world.js";

const gone = 410;

/** Too large to be kept in the log; the same content is the same blob, of each tenant for itself. */
const secretOf = (tenant: string): string => `${tenant} `.repeat(limits.memberBytesMax / 4);

export function blobOf(tenant: string): string {
  return `blob_${createHash("sha256").update(secretOf(tenant)).digest("hex")}`;
}

export async function writeAndErase(world: World, name: string): Promise<void> {
  const drafts = [...story(world, world.whole(5, 40), [])];
  const end = drafts.pop() as Draft;
  const secret = { type: "custom", payload: { secret: secretOf(world.tenant), ...own(world, drafts) } };
  const { run_id } = await produce(world, name, [...drafts, secret as unknown as Draft, end]);
  await world.sleep(world.whole(0, 20_000));
  await erase(world, run_id);
  for (let looks = world.whole(1, 5); looks > 0; looks--) {
    const status = await statusOf(world, run_id);
    if (status !== gone) throw new Error(`${run_id} is erased, and answered with ${status}`);
    await world.sleep(world.whole(0, 5000));
  }
}

/** It may have been done before, by a request whose answer was lost. */
async function erase({ api, persistently }: World, run_id: string): Promise<void> {
  await persistently(() => api.eraseRun(run_id)).catch((error: unknown) => {
    if (!(error instanceof RunwireError) || error.row.status !== gone) throw error;
  });
}

async function statusOf({ api, persistently }: World, run_id: string): Promise<number> {
  try {
    await persistently(() => api.getRun(run_id));
    return 200;
  } catch (error) {
    if (error instanceof RunwireError) return error.row.status;
    throw error;
  }
}
