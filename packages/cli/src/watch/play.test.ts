import type { Clock } from "@runwire/client";
import type { Event } from "@runwire/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sampleEvents } from "../testing/sample.js";
import { gapMsMax, paced, pauseOf } from "./pace.js";
import { play, shownFrom } from "./play.js";
import { pipeScreen } from "./screen.js";

/** Time passes only where somebody waits for it. */
function idleClock(): Clock & { readonly waitedMs: number } {
  let nowMs = 0;
  return {
    get waitedMs() {
      return nowMs;
    },
    nowMs: () => nowMs,
    after(delayMs, ring) {
      nowMs += delayMs;
      queueMicrotask(ring);
      return () => {};
    },
  };
}

async function* of(events: readonly Event[]): AsyncGenerator<Event> {
  yield* events;
}

const { signal } = new AbortController();

async function played(speed: number, step = 0): Promise<{ readonly out: string; readonly waitedMs: number }> {
  const clock = idleClock();
  let out = "";
  const screen = pipeScreen((text) => {
    out += text;
  });
  const shown = shownFrom(of(sampleEvents()), step, { speed, clock, signal });
  await play(shown, { screen, clock, signal, speed, live: false, full: false, children: "show" });
  return { out, waitedMs: clock.waitedMs };
}

describe("a replay", () => {
  it("takes as long as the run took, and its long gaps a few seconds, which is said", async () => {
    const { out, waitedMs } = await played(1);
    expect(waitedMs).toBe(14 * 1000 + gapMsMax);
    expect(out).toContain("── 10 min 1 s later ──\n");
    expect(out.match(/later/g)).toHaveLength(1);
  });

  it("is as much faster as was asked, and at most shows the same at once", async () => {
    expect((await played(2)).waitedMs).toBe(7 * 1000 + gapMsMax);
    const { out, waitedMs } = await played(Number.POSITIVE_INFINITY);
    expect(waitedMs).toBe(0);
    const slow = await played(1);
    expect(out).toBe(slow.out.replace(/── 10 min 1 s later ──\n/, ""));
  });

  it("begins with a step, and knows what was before it", async () => {
    const whole = (await played(1)).out;
    const { out } = await played(1, 1);
    expect(out.split("\n")[0]).toBe("── 10 min 1 s later ──");
    expect(whole.endsWith(out)).toBe(true);
    expect(out).toContain("✓ done in 10 min 15 s");
    await expect(played(1, 3)).rejects.toThrow("there is no step 3; the last is 1");
  });

  it("never waits longer for an event than the limit, and says so exactly where it is cut short", () => {
    fc.assert(
      fc.property(
        fc.double({ noNaN: true }),
        fc.double({ min: 0.001, max: 1e6, noNaN: true }),
        (passedMs, speed) => {
          const { waitMs, cut } = pauseOf(passedMs, speed);
          expect(waitMs).toBeGreaterThanOrEqual(0);
          expect(waitMs).toBeLessThanOrEqual(gapMsMax);
          expect(cut).toBe(passedMs / speed > gapMsMax);
        },
      ),
    );
  });

  it("does not add to its time what showing it costs", async () => {
    const clock = idleClock();
    for await (const { event } of paced(of(sampleEvents()), { speed: 1, clock, signal })) {
      // Half a second of drawing.
      if (event.pos < 10) clock.after(500, () => {});
    }
    expect(clock.waitedMs).toBe(14 * 1000 + gapMsMax);
  });

  it("is left in the middle of a wait", async () => {
    const leaving = new AbortController();
    const clock: Clock = { nowMs: () => 0, after: () => () => leaving.abort() };
    const shown = paced(of(sampleEvents()), { speed: 1, clock, signal: leaving.signal });
    await shown.next();
    const waiting = shown.next();
    leaving.abort();
    await expect(waiting).rejects.toThrow();
  });
});
