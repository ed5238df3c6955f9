import { type Draft, idSource, parentPaused } from "@runwire/protocol";
import { describe, expect, it } from "vitest";
import { appendDrafts } from "./accept.js";
import { type Draftwork, draftwork } from "./commit.js";
import { feedLog } from "./feeds.js";
import { feedHead, type Head } from "./head.js";
import { move } from "./lifecycle.js";

const root_id = "run_root";
const childrenCount = 50;
const times = 100;

/** A root with live children, one commit after the other, and how often heads of its children are looked at. */
function tree() {
  const heads = new Map<string, Head>();
  const ids = idSource(() => 0.5);
  let looks = 0;

  function commit(decide: (work: Draftwork["commit"]) => void): Draftwork {
    const work = draftwork({
      nowMs: 0,
      ids,
      headOf(run_id) {
        if (run_id.startsWith("run_child")) looks += 1;
        return heads.get(run_id);
      },
      storedHeadOf: (run_id) => heads.get(run_id),
      unstoredOf: () => [],
      isTaken: (run_id) => heads.has(run_id),
      leaseLost: () => false,
      createdUnder: () => undefined,
      liveRuns: () => heads.size,
    });
    decide(work.commit);
    for (const [run_id, head] of work.heads) heads.set(run_id, head);
    return work;
  }

  const append = (drafts: readonly Draft[]): Draftwork =>
    commit((work) => void appendDrafts(work, root_id, drafts, undefined, new Map()));

  commit((work) => {
    work.create({ ...feedHead("acme", root_id).run, external: true });
    move(work, root_id, { state: "running" });
  });
  const children = Array.from({ length: childrenCount }, (_, i) => `run_child${i}`);
  append(children.map((child_id) => ({ type: "child.spawn", payload: { child_id, prompt: "go" } })));
  looks = 0;
  return { heads, children, append, looks: () => looks };
}

const moved = (state: "paused" | "running", child_id: string | null = null): Draft => ({
  type: "run.lifecycle",
  payload: { state, reason: child_id === null ? null : parentPaused },
  child_id,
});

describe("a batch", () => {
  it("that names a root many times does not look through all that is below it each time", () => {
    const { append, looks } = tree();
    const titles = Array.from(
      { length: times },
      (_, i): Draft => ({ type: "title", payload: { title: `${i}` } }),
    );
    const { records } = append(titles);
    // What waits below may show it.
    const inbox = feedLog("acme", "inbox");
    expect(records.every(({ places }) => places.some(({ log }) => log === inbox))).toBe(true);
    expect(looks()).toBe(0);
  });

  it("that pauses a run and goes on many times looks through what is below it twice", () => {
    const { append, looks } = tree();
    append(Array.from({ length: times }, () => [moved("paused"), moved("running")]).flat());
    // At each child, and from there at what is below it.
    expect(looks()).toBeLessThanOrEqual(2 * 2 * childrenCount);
  });

  it("leaves nothing paused for the sake of a run that goes on [RW-CONTROL-7]", () => {
    const { append, heads, children } = tree();
    const pair = [moved("paused"), moved("running")];
    const [first, second] = children as [string, string];
    const { records } = append([moved("paused", first), ...pair, moved("paused", second), ...pair]);
    expect(children.map((child_id) => heads.get(child_id)?.state)).toEqual(children.map(() => "running"));
    // The first time at once, so that the rest of the batch finds it running.
    const runs = records.filter(({ type }) => type === "run.lifecycle").map(({ by }) => by);
    expect(runs).toEqual([first, root_id, root_id, first, second, root_id, root_id, second]);
  });

  it("that ends paused leaves what is below it as it is", () => {
    const { append, heads, children } = tree();
    const [child] = children as [string];
    append([
      moved("paused"),
      moved("running"),
      moved("paused"),
      moved("running"),
      moved("paused", child),
      moved("paused"),
    ]);
    expect(heads.get(child)?.state).toBe("paused");
  });
});
