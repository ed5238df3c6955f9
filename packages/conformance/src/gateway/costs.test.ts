// What a run has used up, and what that cost: the same to whoever adds it up.

import type { Facts } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allEvents, append, call, createRun, lifecycle, say } from "./calls.js";
import { isSoak } from "./chance.js";
import { freshChildId } from "./story.js";
import { underTest } from "./under-test.js";

const server = underTest(startGateway);

interface Member {
  readonly usage: readonly Facts[];
  readonly children: readonly Member[];
}

// Quarters add up alike in any order.
const usage = fc.record(
  {
    input_tokens: fc.nat(1_000_000),
    output_tokens: fc.nat(10_000),
    requests: fc.constant(1),
    cost_usd: fc.nat(100).map((quarters) => quarters / 4),
    unpriced_requests: fc.constantFrom(0, 1),
    model: fc.string(),
  },
  { requiredKeys: ["requests"] },
);
const familyOf = (depthMax: number): fc.Arbitrary<Member> =>
  fc.record({
    usage: fc.array(usage, { maxLength: 3 }),
    children: depthMax === 0 ? fc.constant([]) : fc.array(familyOf(depthMax - 1), { maxLength: 2 }),
  });

interface Made {
  readonly run_id: string;
  readonly own: readonly Facts[];
  readonly below: readonly Made[];
}

/** Written in an order that no reader could rely on: the children's in between, and some through the root. */
async function make(member: Member, run_id: string, root: string): Promise<Made> {
  const below: Made[] = [];
  const [first, ...rest] = member.usage;
  const own = run_id === root ? undefined : run_id;
  if (first !== undefined) await append(server.url, root, say("usage", first, own));
  for (const child of member.children) {
    const child_id = freshChildId();
    await append(server.url, root, say("child.spawn", { child_id }, own));
    below.push(await make(child, child_id, root));
  }
  if (rest.length > 0) await append(server.url, run_id, ...rest.map((one) => say("usage", one)));
  return { run_id, own: member.usage, below };
}

const all = ({ own, below }: Made): readonly Facts[] => [...own, ...below.flatMap(all)];
const everyone = (made: Made): readonly Made[] => [made, ...made.below.flatMap(everyone)];

function summed(list: readonly Facts[]): Facts {
  const sum: { [member: string]: number } = {};
  for (const [name, value] of list.flatMap((one) => Object.entries(one)))
    if (typeof value === "number") sum[name] = (sum[name] ?? 0) + value;
  return sum;
}

const get = async (path: string): Promise<Facts> => (await call(server.url, "GET", path)).body;

describe("usage", () => {
  it("of a run is its own and that of all below it, each counted once [RW-CHILD-5]", async () => {
    const roots: Made[] = [];
    await fc.assert(
      fc.asyncProperty(familyOf(3), async (member) => {
        const root = await createRun(server.url);
        const made = await make(member, root, root);
        roots.push(made);
        for (const one of everyone(made)) await holds(one);
        const events = await allEvents(server.url, root);
        const told = events.filter(({ type }) => type === "usage").map(({ payload }) => payload as Facts);
        expect(summed(told)).toEqual(summed(all(made)));
        await append(server.url, root, lifecycle("done"));
      }),
      { numRuns: isSoak ? 300 : 12 },
    );
    await server.restart();
    for (const made of roots) for (const one of everyone(made)) await holds(one);
    // Whoever adds up the list of runs has it all, and nothing twice.
    const { runs } = (await get("/v1/agent/runs?limit=200")) as { readonly runs: readonly Facts[] };
    const listed = new Set(runs.map(({ run_id }) => run_id));
    const counted = roots.filter(({ run_id }) => listed.has(run_id));
    expect(summed(runs.map((run) => run.usage as Facts))).toEqual(summed(counted.flatMap(all)));
  });

  async function holds(made: Made): Promise<void> {
    const { run_id, own } = made;
    const record = await get(`/v1/agent/runs/${run_id}`);
    const sum = summed(all(made));
    expect([run_id, record.usage]).toEqual([run_id, sum]);
    expect(record.cost).toEqual({
      usd: sum.cost_usd ?? null,
      known: sum.cost_usd !== undefined && (sum.unpriced_requests ?? 0) === 0,
    });
    const { transcript } = (await get(`/v1/agent/runs/${run_id}/snapshot`)) as { readonly transcript: Facts };
    expect(transcript.usage).toEqual(summed(own));
  }
});
