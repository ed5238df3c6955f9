import { expect, it } from "vitest";
import { awakeTime } from "./clock.js";

it("time in which the process did not run is not counted, and all other time is", () => {
  let nowMs = 500;
  const awake = awakeTime(() => nowMs);
  const passed = (ms: number): number => {
    const beforeMs = awake();
    nowMs += ms;
    return awake() - beforeMs;
  };
  expect([1, 0, 1000, 2000, 2001, 60_000, 900].map(passed)).toEqual([1, 0, 1000, 2000, 0, 0, 900]);
});
