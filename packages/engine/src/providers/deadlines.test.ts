import { expect, test } from "vitest";
import type { Clock } from "../clock.js";
import { deadlines } from "./deadlines.js";

/** Rings by hand. */
function heldClock() {
  let nowMs = 0;
  const due = new Set<{ readonly atMs: number; readonly ring: () => void }>();
  const clock: Clock = {
    nowMs: () => nowMs,
    after(delayMs, ring) {
      const timer = { atMs: nowMs + delayMs, ring };
      due.add(timer);
      return () => due.delete(timer);
    },
  };
  const pass = (ms: number): void => {
    nowMs += ms;
    for (const timer of [...due].filter(({ atMs }) => atMs <= nowMs)) {
      due.delete(timer);
      timer.ring();
    }
  };
  return { clock, pass };
}

const limits = { firstPartMsMax: 50, silenceMsMax: 100, answerMsMax: 1000 };
const ever = new Promise<never>(() => {});

function listening() {
  const { clock, pass } = heldClock();
  const missed: string[] = [];
  const due = deadlines(clock, limits, (failure) => missed.push(failure("it").message));
  return { due, pass, missed };
}

test("each sign of life is followed by as much silence as may be, and not by more", () => {
  const { due, pass, missed } = listening();
  void due.listen(ever);
  pass(40);
  for (let i = 0; i < 5; i++) {
    due.heard();
    pass(90);
  }
  expect(missed).toEqual([]);
  pass(10);
  expect(missed).toEqual(["it fell silent for 100 ms"]);
});

test("whoever gives no sign of life has not begun", () => {
  const { due, pass, missed } = listening();
  void due.listen(ever);
  pass(50);
  expect(missed).toEqual(["it did not begin to answer in 50 ms"]);
});

test("the time in which nobody listens is no silence", async () => {
  const { due, pass, missed } = listening();
  due.heard();
  await due.listen(Promise.resolve());
  pass(500);
  due.heard();
  pass(400);
  expect(missed).toEqual([]);
  pass(100);
  expect(missed).toEqual(["it did not end its answer in 1000 ms"]);
});

test("signs of life for ever are no answer", () => {
  const { due, pass, missed } = listening();
  void due.listen(ever);
  for (let i = 0; i < 20; i++) {
    due.heard();
    pass(50);
  }
  expect(missed).toEqual(["it did not end its answer in 1000 ms"]);
});
