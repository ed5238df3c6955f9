import { expect, test } from "vitest";
import { approve } from "./approve.js";
import { newCall } from "./call-work.js";
import type { Loop } from "./loop.js";
import type { Telling } from "./telling.js";
import type { Tool } from "./tool.js";

/** What becomes of a call whose request was resolved so. */
function verdict(decision: unknown): ReturnType<typeof approve> {
  const resolved = { approval_id: "appr_1", decision, outcome: "answered" };
  const call = {
    ...newCall({ call_id: "call_1", tool: "t", input: { n: 1 } }, false),
    approval: { id: "appr_1", resolved },
  };
  const work = { calls: [call] };
  const loop = {
    log: { work, until: async () => work },
    run: { tenant: "default", run_id: "run_1" },
    given: { approvals: "always" },
  };
  const tool = { name: "t", effect: "destructive" } as Tool;
  return approve(loop as unknown as Loop, call, tool, new AbortController().signal, {} as Telling);
}

test("a tool runs on a yes, and whatever else was said is a no", async () => {
  for (const decision of ["once", "session", "always"])
    expect(await verdict(decision)).toMatchObject({ kind: "go", input: { n: 1 }, approved: { decision } });
  for (const decision of ["deny", "denied", "reject", "", undefined, null, true])
    expect(await verdict(decision)).toEqual({ kind: "denied", why: "denied" });
});
