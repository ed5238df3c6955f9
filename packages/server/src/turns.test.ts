import { expect, it } from "vitest";
import { turns } from "./turns.js";

const key = { tenant: "default", run_id: "run_a" };

it("what is done for one run is done one after the other, also behind what fails, and no other run waits", async () => {
  const { take } = turns();
  const said: string[] = [];
  let go = (): void => {};
  const held = new Promise<void>((resolve) => {
    go = resolve;
  });
  const first = take(key, async () => {
    said.push("begins");
    await held;
    said.push("fails");
    throw new Error("refused");
  });
  const second = take(key, async () => said.push("second"));
  await take({ ...key, run_id: "run_b" }, async () => said.push("another run"));
  expect(said).toEqual(["begins", "another run"]);
  go();
  await expect(first).rejects.toThrow("refused");
  await second;
  await take(key, async () => said.push("third"));
  expect(said.slice(2)).toEqual(["fails", "second", "third"]);
});
