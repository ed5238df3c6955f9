import { expect, it } from "vitest";
import { turns } from "./turns.js";

const tenant = "default";

it("what is done under one name is done one after the other, also behind what fails, and no other waits", async () => {
  const { take } = turns();
  const said: string[] = [];
  let go = (): void => {};
  const held = new Promise<void>((resolve) => {
    go = resolve;
  });
  const first = take(tenant, "a", async () => {
    said.push("begins");
    await held;
    said.push("fails");
    throw new Error("refused");
  });
  const second = take(tenant, "a", async () => said.push("second"));
  await take(tenant, "b", async () => said.push("another"));
  expect(said).toEqual(["begins", "another"]);
  go();
  await expect(first).rejects.toThrow("refused");
  await second;
  await take(tenant, "a", async () => said.push("third"));
  expect(said.slice(2)).toEqual(["fails", "second", "third"]);
});
