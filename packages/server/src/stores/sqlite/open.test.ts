import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { systemClock } from "../../clock.js";
import { filesOf, isIoError } from "./open.js";
import { sqliteStore } from "./store.js";

const folder = mkdtempSync(join(tmpdir(), "runwire-open-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("files that cannot be looked at count as lost: a commit to them may be or not", () => {
  const data = join(folder, "data");
  mkdirSync(data);
  for (const name of ["a.db", "a.db-wal"]) writeFileSync(join(data, name), "");
  const check = filesOf(join(data, "a.db"));
  check();
  renameSync(data, `${data}.away`);
  // A link to itself: whoever asks gets an error, and not that there is nothing.
  symlinkSync(data, data);
  const thrown = (): unknown => {
    try {
      check();
      return undefined;
    } catch (error) {
      return error;
    }
  };
  expect(thrown()).toMatchObject({ message: expect.stringMatching(/^a\.db cannot be looked at: ELOOP/) });
  expect(isIoError((thrown() as { errcode?: number }).errcode)).toBe(true);
});

it("a store whose files cannot be looked at says that nothing is written", async () => {
  const data = join(folder, "store");
  mkdirSync(data);
  const store = sqliteStore({ path: join(data, "a.db"), durability: "os", clock: systemClock });
  expect(store.levels().writing).toBe("ok");
  renameSync(data, `${data}.away`);
  symlinkSync(data, data);
  expect(store.levels()).toMatchObject({ writing: "broken", databaseBytes: 0, diskFreeBytes: 0 });
  rmSync(data);
  renameSync(`${data}.away`, data);
  await store.close();
});
