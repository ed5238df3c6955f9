// Real runs of the built-in agent that thought in a tree and in a graph, as Loom says them. `<agent>.runwire.jsonl` is the
// run's log; the other file is made from it (`vitest run -u` makes it anew).

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { Event } from "../../events.js";
import { loom } from "./loom.js";
import { loomValidator } from "./validate.js";

const fixture = (name: string): string =>
  fileURLToPath(new URL(`../../../fixtures/${name}`, import.meta.url));

describe.each(["tot", "got"])("a run of %s", (agent) => {
  const log = readFileSync(fixture(`${agent}.runwire.jsonl`), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Event);
  const said = saidIn(log);

  it("is said in Loom as its file says, and as Loom should be said", async () => {
    await expect(`${said.join("\n")}\n`).toMatchFileSnapshot(fixture(`${agent}.loom.jsonl`));
    const validator = loomValidator();
    expect([...said.flatMap((line) => validator.check(line)), ...validator.end()]).toEqual([]);
  });

  it("is said again as it was, read from there", () => {
    const decoder = loom.decoder();
    const drafts = said.flatMap((data) => decoder.decode({ data }));
    const again = drafts.map(
      (draft, i) => ({ child_id: null, run_id: "run_1", pos: i + 1, ...draft }) as unknown as Event,
    );
    // Null is what absent is.
    expect(saidIn(again)).toEqual(said.map((line) => line.replace(',"checkpoint_ns":null', "")));
  });
});

function saidIn(log: readonly Event[]): readonly string[] {
  let state = loom.first;
  return log.flatMap((e) => {
    const [next, messages] = loom.step(state, e);
    state = next;
    return messages.map(({ data }) => data);
  });
}
