// Those who write whole trees: one producer that speaks for a run and for all below it, down to the deepest level, and
// others that write to one child each. Children end, or are still alive when their parent does.

import { type Draft, limits, RunwireError } from "@runwire/protocol";
import { runIsOver } from "./people.js";
import { own, type Production, produce, write } from "./producing.js";
import type { World } from "./world.js";

interface Member {
  readonly run_id: string;
  readonly parent: Member | null;
  readonly depth: number;
}

export interface Tree {
  readonly production: Production;
  /** Every child that the story has; a run that ended early lacks some. */
  readonly children: readonly string[];
}

/** What a run and those below it say, numbered across all of them. */
function treeStory(
  world: World,
  name: string,
  length: number,
): { readonly children: readonly string[]; readonly drafts: readonly Draft[] } {
  const drafts: Draft[] = [];
  const root: Member = { run_id: "", parent: null, depth: 0 };
  let live: Member[] = [root];
  const children: string[] = [];
  const say = ({ run_id }: Member, type: string, payload: object): void => {
    const child_id = run_id === "" ? {} : { child_id: run_id };
    drafts.push({ type, ...child_id, payload: { ...payload, ...own(world, drafts) } } as unknown as Draft);
  };
  const isBelow = (member: Member | null, top: Member): boolean =>
    member !== null && (member === top || isBelow(member.parent, top));
  let calls = 0;
  while (drafts.length < length) {
    // The youngest as often as all others together: so some trees are as deep as they may be.
    const member = world.whole(0, 1) === 0 ? (live.at(-1) ?? root) : world.pick(live);
    switch (world.whole(0, 6)) {
      case 0: {
        if (member.depth >= limits.childDepthMax) break;
        const run_id = `run_${name}.${children.length + 1}`;
        say(member, "child.spawn", { child_id: run_id, prompt: "dig" });
        children.push(run_id);
        live.push({ run_id, parent: member, depth: member.depth + 1 });
        break;
      }
      case 1:
        if (member === root || world.whole(0, 2) > 0) break;
        say(member, "run.lifecycle", { state: world.pick(["done", "error"]), reason: null });
        live = live.filter((other) => !isBelow(other, member));
        break;
      case 2:
        calls += 1;
        say(member, "tool.start", { call_id: `call_${calls}`, tool: "look", input: { calls } });
        if (world.whole(0, 2) > 0)
          say(member, "tool.end", { call_id: `call_${calls}`, ok: true, output: "x" });
        break;
      case 3:
        for (let i = world.whole(1, 5); i > 0; i--)
          say(member, "reasoning.delta", { text: `r${drafts.length} ` });
        break;
      default:
        for (let i = world.whole(1, 8); i > 0; i--) say(member, "text.delta", { text: `t${drafts.length} ` });
    }
  }
  drafts.push({ type: "run.lifecycle", payload: { state: "done" } });
  return { children, drafts };
}

export async function produceTree(
  world: World,
  name: string,
  length: number,
  others: (production: Production) => void,
): Promise<Tree> {
  const { children, drafts } = treeStory(world, name, length);
  const production = await produce(world, name, drafts);
  for (const run_id of children.filter(() => world.whole(0, 3) === 0))
    world.begin(`another producer of ${run_id}`, async () => {
      if (!(await isThere(world, run_id, production.run_id))) return;
      const { lease_ms } = production;
      const contactMs = world.time.ms;
      others(
        write(world, `${run_id} by another`, {
          ...{ run_id, lease_ms, contactMs, by: run_id, goneAfter: Number.POSITIVE_INFINITY },
          drafts: ownStory(world, run_id, world.whole(1, 30)),
        }),
      );
    });
  return { production, children };
}

/** The last is not numbered, as with everyone. */
function ownStory(world: World, by: string, length: number): readonly Draft[] {
  const numbered = Array.from({ length }, (_, i) => ({
    type: world.pick(["text.delta", "reasoning.delta", "custom"] as const),
    payload: { text: `q${i} `, by, n: i + 1, whose: world.tenant },
  }));
  return [...numbered, { type: "usage", payload: { output_tokens: 1 } }] as unknown as readonly Draft[];
}

/** Waits until a child is there; false where its root has ended without it. */
export async function isThere(world: World, run_id: string, root_id: string): Promise<boolean> {
  for (;;) {
    const isLast = await runIsOver(world, root_id);
    try {
      await world.persistently(() => world.api.getRun(run_id));
      return true;
    } catch (error) {
      if (!(error instanceof RunwireError) || error.row.status !== 404) throw error;
      if (isLast) return false;
      await world.sleep(world.whole(100, 3000));
    }
  }
}
