import { describe, expect, it } from "vitest";
import { feedHead, firstHead, type Head } from "../../log/head.js";
import { type RunMap, runMap } from "../../run-map.js";
import { watch } from "./watch.js";

const tenant = "acme";
const lease_ms = 1000;
const childrenCount = 100;

/** A root with live children that is watched, and how often heads are looked at. */
function watchedTree() {
  const known = runMap<Head>();
  let looks = 0;
  const heads: RunMap<Head> = {
    ...known,
    get(...of) {
      looks += 1;
      return known.get(...of);
    },
  };
  let nowMs = 0;
  const watched = watch({ now: () => nowMs, monotonic: () => nowMs }, heads);
  const children = Array.from({ length: childrenCount }, (_, i) => `run_child${i}`);
  const { run } = feedHead(tenant, "run_root");
  const root: Head = { ...firstHead({ ...run, external: true, lease_ms }), state: "running", children };
  const below = children.map(
    (run_id): Head => ({
      ...firstHead({ ...root.run, run_id, parent_id: "run_root", depth: 1 }),
      state: "running",
    }),
  );
  for (const head of [root, ...below]) {
    known.set(tenant, head.run.run_id, head);
    watched.see(head);
  }
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  return { watched, root, children, pass, looks: () => looks };
}

describe("the lease of a tree", () => {
  it("is renewed without a look at what is below its root", () => {
    const { watched, root, looks } = watchedTree();
    const before = looks();
    for (let i = 0; i < 10; i++) watched.renew(root);
    expect(looks() - before).toBeLessThan(childrenCount);
  });

  it("is that of all its runs, and is due once [RW-LEASE-1] [RW-LEASE-2]", () => {
    const { watched, root, children, pass } = watchedTree();
    const all = ["run_root", ...children];
    pass(lease_ms - 1);
    watched.renew(root);
    pass(lease_ms - 1);
    expect(all.filter((run_id) => watched.leaseLost(tenant, run_id))).toEqual([]);
    expect(watched.due()).toEqual([]);
    pass(1);
    expect(all.filter((run_id) => watched.leaseLost(tenant, run_id))).toEqual(all);
    expect(watched.due()).toEqual([{ why: "lease", key: { tenant, run_id: "run_root" } }]);
  });
});

it("runs that live are counted each, whoever's lease they have", () => {
  const { watched, root } = watchedTree();
  expect([watched.liveRuns(tenant), watched.liveRuns()]).toEqual([childrenCount + 1, childrenCount + 1]);
  watched.see({ ...root, state: "done" });
  expect([watched.liveRuns(tenant), watched.liveRuns("other")]).toEqual([childrenCount, 0]);
});
