import { expect, it } from "vitest";
import { artifactsOf } from "./artifact.js";
import { artifactLimits } from "./limits.js";
import type { FileChange } from "./watch.js";

const place = { call_id: "call_1", root_id: "run_1", workspace: "/nowhere" };

function created(text: string): FileChange {
  const content = Buffer.from(text);
  return {
    path: "a.txt",
    change: "created",
    before: null,
    after: { bytes: content.length, content },
  } as never;
}

it("compares what is short enough to look at, and keeps the others whole", async () => {
  const line = "\n".repeat(artifactLimits.comparedBytesMax);
  const [short, long] = await artifactsOf([created(line), created(`${line}\n`)], place);
  expect([short, long].map((draft) => Object.keys(draft?.attached ?? {}))).toEqual([
    ["read_ref", "diff_ref"],
    ["read_ref"],
  ]);
});
