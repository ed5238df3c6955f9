import { expect, it } from "vitest";
import { turns } from "./turns.js";

it("lets a crowd in one by one, in their order, and others in between", async () => {
  const turn = turns();
  const seen: (number | "other")[] = [];
  const other = (): void => {
    seen.push("other");
    if (seen.length < 10) setImmediate(other);
  };
  const come = (n: number): Promise<void> => turn().then(() => void seen.push(n));
  const first = [1, 2, 3].map(come);
  setImmediate(other);
  await Promise.all(first);
  await Promise.all([4, 5].map(come));
  expect(seen.filter((one) => one !== "other")).toEqual([1, 2, 3, 4, 5]);
  const [, ...rest] = seen.slice(0, seen.indexOf(3) + 1);
  expect(rest).toEqual(["other", 2, "other", 3]);
});
