import { afterEach, describe, expect, it, vi } from "vitest";
import type { Caller } from "./auth/caller.js";
import { connections } from "./connections.js";

afterEach(() => vi.useRealTimers());

describe("a session that is signed out", () => {
  it("also ends what it was opening at that moment, and nothing of another one [RW-SESSION-3]", () => {
    vi.useFakeTimers();
    const open = connections({ now: () => 0, monotonic: () => performance.now() }, () => false);
    const ended: string[] = [];
    const join = (session: string): void => {
      const caller = { session } as unknown as Caller;
      open.add({
        sentMs: () => Number.POSITIVE_INFINITY,
        caller,
        ping() {},
        leave() {},
        end: ({ code }) => ended.push(`${session} ${code}`),
      });
    };
    open.signedOut("hers");
    // It was let in before, and is there only now.
    join("hers");
    join("his");
    vi.advanceTimersByTime(1000);
    expect(ended).toEqual(["hers KAI-AUTH-TOKEN-0003"]);
    open.close();
  });
});
