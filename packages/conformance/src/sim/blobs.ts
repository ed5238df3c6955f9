// What was spilled from an event is there as long as the event is.

import { statSync } from "node:fs";
import { join } from "node:path";
import { type Draft, type Event, isObject } from "@runwire/protocol";
import type { World } from "./world.js";

/** More than an event keeps. */
const largeChars = 70_000;
/** Between two looks at all of them. */
const lookSteps = 100;

/** The same story with outputs that are large, of which some are the same as others. */
export function withLarge(world: World, drafts: readonly Draft[]): readonly Draft[] {
  return drafts.map((draft) =>
    draft.type === "tool.end" && world.whole(0, 2) === 0
      ? { ...draft, payload: { ...draft.payload, output: largeOutput(world) } }
      : draft,
  );
}

/** A call, and what came of it. */
export function shortStory(world: World): readonly Draft[] {
  return [
    { type: "tool.start", payload: { call_id: "c", tool: "look", n: 1 } },
    { type: "tool.end", payload: { call_id: "c", ok: true, output: largeOutput(world), n: 2 } },
    { type: "run.lifecycle", payload: { state: "done" } },
  ] as unknown as readonly Draft[];
}

const largeOutput = (world: World): string => `${world.whole(1, 12)}`.padEnd(largeChars);

export function expectBlobs(world: World, run_id: string): void {
  const { tenant } = world;
  let starts = 0;
  let looked = 0;
  world.always(() => {
    const log = world.audit.log({ tenant, run_id }, "full");
    if (starts !== world.counts.starts || world.counts.steps % lookSteps === 0) looked = 0;
    ({ starts } = world.counts);
    for (; looked < log.length; looked++)
      for (const { ref, bytes } of spilledFrom(log[looked] as Event)) {
        const hex = ref.slice("blob_".length);
        const path = join(world.folder, "blobs", tenant, hex.slice(0, 2), hex);
        const found = statSync(path, { throwIfNoEntry: false })?.size;
        if (found !== bytes) throw new Error(`${run_id}: ${ref} has ${found} bytes of ${bytes}`);
      }
  });
}

export function spilledFrom({ payload }: Event): readonly { readonly ref: string; readonly bytes: number }[] {
  const { spilled } = payload as { readonly spilled?: unknown };
  if (!isObject(spilled)) return [];
  return Object.values(spilled).map((one) => {
    const { blob_ref, bytes } = one as { readonly blob_ref: string; readonly bytes: number };
    return { ref: blob_ref, bytes };
  });
}
