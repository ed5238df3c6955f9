import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { type Event, runwireText } from "@runwire/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { follow } from "../follow.js";
import type { Source } from "../sources/source.js";
import { saying } from "../testing/log.js";
import { fileSource, lineSource } from "./file.js";

const log = saying(["one ", "two "]);
const lines = (events: readonly Event[]) => events.map((event) => `${runwireText(event)}\n`).join("");

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "runwire-client-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function readAll(source: Source): Promise<readonly Event[]> {
  const events: Event[] = [];
  for await (const item of follow(source)) if (item.kind === "event") events.push(item.event);
  return events;
}

describe("a log in a file", () => {
  test("is read whole", async () => {
    const path = join(folder, "run.jsonl");
    await writeFile(path, lines(log));
    expect(await readAll(fileSource(path))).toEqual(log);
  });

  test("ends where the file ends, even in the middle of a run and of a line", async () => {
    const path = join(folder, "half.jsonl");
    await writeFile(path, lines(log.slice(0, 3)).trimEnd());
    expect(await readAll(fileSource(path))).toEqual(log.slice(0, 3));
  });

  test("may hold several runs", async () => {
    const other = saying(["three "], 0.3, "run_other");
    expect(await readAll(lineSource(Readable.from([lines(log), lines(other)])))).toEqual([...log, ...other]);
  });

  test("that holds two logs of one run is refused instead of read for ever", async () => {
    const mixed = lines([...log.slice(0, 4), ...saying(["x"], 0.9).slice(2)]);
    await expect(readAll(lineSource(Readable.from([mixed])))).rejects.toThrow("two logs of one run");
  });

  test("that is not there is an error", async () => {
    await expect(readAll(fileSource(join(folder, "missing.jsonl")))).rejects.toMatchObject({
      code: "ENOENT",
    });
  });

  test("can be left while nobody writes to it", async () => {
    const stop = new AbortController();
    const input = new PassThrough();
    input.write(lines(log.slice(0, 1)));
    const reading = (async () => {
      for await (const _ of follow(lineSource(input), { signal: stop.signal })) {
        setImmediate(() => stop.abort(new Error("enough")));
      }
    })();
    await expect(reading).rejects.toThrow();
    expect(input.destroyed).toBe(true);
  });
});
