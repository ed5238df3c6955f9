// The wire as files: a change of any byte shows in the diff of `fixtures/`. `run.runwire.jsonl` is the source: it
// holds every core type and the extended ones a client meets most. The other files of that name are made from it
// (`vitest run -u` makes them anew).

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { coreTypes, type Draft, type Event } from "../events.js";
import { parseDraft } from "../parse.js";
import { reduce } from "../reduce.js";
import { emptyTranscript } from "../transcript.js";
import { koder } from "./koder.js";
import { loom, loomExport } from "./loom/loom.js";
import { words } from "./loom/words.js";
import { runwire } from "./runwire.js";

const lines = readLines("run.runwire.jsonl");
const log = lines.map((data) => eventOf(runwire.decoder().decode({ data })[0]));

describe("the golden run", () => {
  it("reads and writes back byte by byte in runwire [RW-ENV-1] [RW-ENV-3]", () => {
    expect(log.flatMap((e) => runwire.step(null, e)[1])).toEqual(
      lines.map((data, i) => ({ id: String(i + 1), data })),
    );
  });

  it("is said in koder as its file says, and reads back byte by byte [RW-ENV-2] [RW-KODER-1]", async () => {
    const said = log.flatMap((e) => koder.step(null, e)[1]);
    await expect(said.map(({ data }) => `${data}\n`).join("")).toMatchFileSnapshot(
      fixture("run.koder.jsonl"),
    );
    for (const message of said) {
      const e = eventOf(koder.decoder().decode(message)[0]);
      expect(koder.step(null, e)[1]).toEqual([message]);
    }
    expect(new Set(said.map(({ data }) => JSON.parse(data).type))).toEqual(coreTypes);
  });

  it.each([loom, loomExport])("is said in $name as its file says", async (dialect) => {
    let state = dialect.first;
    const said = log.flatMap((e) => {
      const [next, messages] = dialect.step(state, e);
      state = next;
      return messages;
    });
    await expect(said.map(({ data }) => `${data}\n`).join("")).toMatchFileSnapshot(
      fixture(`run.${dialect.name}.jsonl`),
    );
  });

  it("folds to the transcript of its file", async () => {
    const transcript = log.reduce(reduce, emptyTranscript("run_01K0000000000000000000000A"));
    const text = `${JSON.stringify(transcript, null, 2)}\n`;
    await expect(text).toMatchFileSnapshot(fixture("run.transcript.json"));
  });
});

describe("Loom's streaming output", () => {
  it.each(["loom-examples.jsonl", "loom-words.jsonl"])("is understood as %s has it", async (name) => {
    const decoder = loom.decoder();
    const drafts = readLines(name).flatMap((data) => decoder.decode({ data }));
    await expect(drafts.map((draft) => `${JSON.stringify(draft)}\n`).join("")).toMatchFileSnapshot(
      fixture(name.replace(".jsonl", ".drafts.jsonl")),
    );
  });

  it("is exported as loom-words.export.jsonl has it, each word with one member, and understood again", async () => {
    const decoder = loom.decoder();
    const drafts = readLines("loom-words.jsonl").flatMap((data) => decoder.decode({ data }));
    let state = loomExport.first;
    const said = drafts.flatMap((draft) => {
      const [next, messages] = loomExport.step(state, eventOf(draft));
      state = next;
      return messages.map(({ data }) => data);
    });
    await expect(said.map((data) => `${data}\n`).join("")).toMatchFileSnapshot(
      fixture("loom-words.export.jsonl"),
    );
    const back = loomExport.decoder();
    for (const data of said) {
      expect(Object.keys(JSON.parse(data))).toHaveLength(1);
      expect(back.decode({ data }).length).toBeGreaterThan(0);
    }
  });

  it("has one example of each word", () => {
    const types = readLines("loom-words.jsonl").map((line) => JSON.parse(line).type);
    expect(new Set(types)).toEqual(new Set(Object.keys(words)));
  });
});

describe("the agent stream protocol", () => {
  it.each(readLines("agent-stream.jsonl"))("is understood: %s [RW-TYPE-1] [RW-DRAFT-1]", (line) => {
    const draft = parseDraft(JSON.parse(line));
    expect(coreTypes).toContain(draft.type);
    expect(JSON.stringify(draft)).toBe(line);
  });

  it("has one example of each of the eight types", () => {
    expect(new Set(readLines("agent-stream.jsonl").map((line) => JSON.parse(line).type))).toEqual(coreTypes);
  });
});

function eventOf(draft: Draft | undefined): Event {
  return { pos: 0, child_id: null, ...draft } as Event;
}

function readLines(name: string): readonly string[] {
  return readFileSync(fixture(name), "utf8").trimEnd().split("\n");
}

function fixture(name: string): string {
  return fileURLToPath(new URL(`../../fixtures/${name}`, import.meta.url));
}
