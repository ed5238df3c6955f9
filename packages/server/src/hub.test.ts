import { type Dialect, runwire, type StoredEvent } from "@runwire/protocol";
import { describe, expect, it } from "vitest";
import { memoryBus } from "./bus.js";
import { heldBytes } from "./held.js";
import { hub } from "./hub.js";
import { feedLog } from "./log/feeds.js";
import { stretchOf } from "./log/stretch.js";
import { encode, type Range } from "./range.js";
import type { Store } from "./store.js";
import type { Wire } from "./wire.js";

const eventsMax = 10_000;
const cut = 500;
const eventAt = (pos: number) =>
  ({ pos, type: "custom", payloadText: "x".repeat(100), child_id: null }) as unknown as StoredEvent;

const key = { tenant: "t", run_id: "run_a" };
const listener = { moved: () => true, gone() {}, failed() {}, lagBytes: () => undefined };

/** A log that is all in memory. */
const store = {
  head: async () => ({ views: { default: { pos: eventsMax }, full: { pos: eventsMax } } }),
  read: async (_key: unknown, _view: unknown, after: number) =>
    stretchOf(Array.from({ length: Math.min(cut, eventsMax - after) }, (_, i) => eventAt(after + i + 1))),
} as unknown as Store;

describe("whoever reads a long log that others have read", () => {
  it("lets others come in between", async () => {
    const log = await hub(store, memoryBus()).follow(key, "default", listener);
    const readAll = async (): Promise<{ readonly turns: number; readonly reads: number }> => {
      let [turns, reads, isOver] = [0, 0, false];
      const turn = (): void => {
        turns += 1;
        if (!isOver) setImmediate(turn);
      };
      setImmediate(turn);
      for (let at = 0; at < eventsMax; reads += 1) at = (await log.next(at))?.to ?? eventsMax;
      isOver = true;
      return { turns, reads };
    };
    await readAll();
    const { turns, reads } = await readAll();
    expect(reads).toBe(eventsMax / cut);
    expect(turns).toBeGreaterThanOrEqual(reads - 2);
  });
});

describe("whoever reads the end of a log behind others", () => {
  it("is given what they were given, until the log moves", async () => {
    const bus = memoryBus();
    let [end, reads] = [5, 0];
    const growing = {
      ...store,
      head: async () => ({ views: { default: { pos: end }, full: { pos: end } } }),
      async read(_key: unknown, _view: unknown, after: number) {
        reads += 1;
        return stretchOf(Array.from({ length: end - after }, (_, i) => eventAt(after + i + 1)));
      },
    } as unknown as Store;
    const following = hub(growing, bus);
    let moved = () => {};
    const me = {
      ...listener,
      moved() {
        moved();
        return true;
      },
    };
    const log = await following.follow(key, "default", me);
    const first = await log.next(2);
    expect([first?.to, reads]).toEqual([5, 1]);
    for (let more = 0; more < 3; more++) expect(await log.next(2)).toBe(first);
    // As it was read, and as somebody says it.
    expect([reads, following.levels().rangesCachedBytes]).toEqual([1, 2 * (first?.weights.all ?? 0)]);
    const hasMoved = new Promise<void>((resolve) => {
      moved = resolve;
    });
    end = 7;
    bus.publish(key);
    await hasMoved;
    expect(following.levels().rangesCachedBytes).toBe(0);
    const grown = await log.next(2);
    expect(grown?.to).toBe(7);
    expect(await log.next(2)).toBe(grown);
    expect(following.levels().rangesCachedBytes).toBe(2 * (grown?.weights.all ?? 0));
    // Nobody is there to share it with.
    log.leave(me);
    expect(following.levels().rangesCachedBytes).toBe(0);
  });
});

describe("what is kept for those who come late", () => {
  it("is counted with what each wire makes of it", async () => {
    const following = hub(store, memoryBus());
    const log = await following.follow(key, "default", listener);
    const range = (await log.next(0)) as Range;
    // Once it is made, not once somebody else comes for it.
    const counted = [1000, 20_000, 3].map((length) => {
      const dialect = { ...runwire, step: (state: unknown) => [state, []] } as unknown as Dialect;
      const wire: Wire = { name: `${length}`, dialect, framing: "sse", frame: () => Buffer.alloc(length) };
      encode(range, wire, 0);
      return following.levels().rangesCachedBytes - range.weights.all - range.encoded.size * heldBytes(0);
    });
    expect(counted).toEqual([1000, 21_000, 21_003]);
    expect(await log.next(0)).toBe(range);
  });

  it("is counted with the whole segment that it is a part of", async () => {
    const bytes = Buffer.alloc(256 * 1024);
    const lines = { log: key.run_id, firstPos: 1, bytes, marks: new Uint32Array(0) };
    const part = { lines, events: [], last: eventAt(1) };
    const following = hub({ ...store, read: async () => part } as unknown as Store, memoryBus());
    const log = await following.follow(key, "default", listener);
    await log.next(0);
    expect(following.levels().rangesCachedBytes).toBeGreaterThanOrEqual(bytes.length);
  });
});

describe("a store that cannot be read", () => {
  const damaged = (): Promise<never> => Promise.reject(new Error("damaged"));

  it("fails those who read on, and nobody else", async () => {
    const bus = memoryBus();
    const following = hub({ ...store, read: damaged } as unknown as Store, bus);
    const failed = new Promise<void>((resolve) => {
      void following.follow(key, "default", { ...listener, failed: resolve }).then(() => bus.publish(key));
    });
    await failed;
  });

  it("is asked again by the next who comes", async () => {
    let isDamaged = true;
    const head: Store["head"] = (asked) => (isDamaged ? damaged() : store.head(asked));
    const following = hub({ ...store, head } as unknown as Store, memoryBus());
    await expect(following.follow(key, "default", listener)).rejects.toThrow("damaged");
    isDamaged = false;
    expect((await following.follow(key, "default", listener)).end).toBe(eventsMax);
  });
});

describe("a log that has moved on by more than is kept", () => {
  it("is gone for whoever was at its head", async () => {
    const bus = memoryBus();
    let end = 5;
    const pruned = {
      ...store,
      head: async () => ({ views: { default: { pos: end }, full: { pos: end } } }),
      read: async () => stretchOf([]),
    } as unknown as Store;
    let goneCount = 0;
    const following = hub(pruned, bus);
    await following.follow(key, "default", {
      ...listener,
      gone: () => {
        goneCount += 1;
      },
    });
    const ring = async (): Promise<number> => {
      bus.publish(key);
      await new Promise((resolve) => setImmediate(resolve));
      return goneCount;
    };
    expect(await ring()).toBe(0);
    end = 9;
    expect(await ring()).toBe(1);
  });
});

describe("a log that was erased while its reader got ready", () => {
  it("is gone, though nothing rings for it", async () => {
    const erased = { ...store, head: async () => undefined, read: async () => stretchOf([]) };
    await new Promise<void>((resolve) => {
      void hub(erased as unknown as Store, memoryBus()).follow(key, "default", {
        ...listener,
        gone: resolve,
      });
    });
  });
});

describe("a feed that nobody has written to", () => {
  it("is waited for", async () => {
    const bus = memoryBus();
    const feed = { tenant: "t", run_id: feedLog("t", "runs") };
    let end = 0;
    const empty = {
      ...store,
      head: async () => (end === 0 ? undefined : { views: { default: { pos: end }, full: { pos: end } } }),
      read: async (_key: unknown, _view: unknown, after: number) =>
        stretchOf(after < end ? [eventAt(after + 1)] : []),
    };
    let gone = false;
    const moved = new Promise<void>((resolve) => {
      void hub(empty as unknown as Store, bus)
        .follow(feed, "default", {
          ...listener,
          moved() {
            resolve();
            return true;
          },
          gone: () => {
            gone = true;
          },
        })
        .then(async () => {
          await new Promise((next) => setImmediate(next));
          end = 1;
          bus.publish(feed);
        });
    });
    await moved;
    expect(gone).toBe(false);
  });
});

describe("a log that moves while it is being opened", () => {
  it("is heard of, though nothing follows", async () => {
    const bus = memoryBus();
    let end = 5;
    const moving = {
      ...store,
      // By the time the answer is there it is old.
      async head() {
        const head = { views: { default: { pos: end }, full: { pos: end } } };
        if (end === 5) {
          end = 6;
          bus.publish(key);
        }
        return head;
      },
      read: async (_key: unknown, _view: unknown, after: number) =>
        stretchOf(after < end ? [eventAt(after + 1)] : []),
    };
    const moved = new Promise<void>((resolve) => {
      void hub(moving as unknown as Store, bus).follow(key, "default", {
        ...listener,
        moved() {
          resolve();
          return true;
        },
      });
    });
    await moved;
  });
});

describe("what is at the head of a log", () => {
  it.each([
    ["is kept as long as a reader has not had it", false],
    ["is kept for nobody once all have had it", true],
  ])("%s", async (_, isThere) => {
    const bus = memoryBus();
    let end = 5;
    const growing = {
      ...store,
      head: async () => ({ views: { default: { pos: end }, full: { pos: end } } }),
      read: async (_key: unknown, _view: unknown, after: number) =>
        stretchOf(after < end ? [eventAt(after + 1)] : []),
    } as unknown as Store;
    const following = hub(growing, bus);
    const log = await following.follow(key, "default", listener);
    const moved = new Promise<void>((resolve) => {
      const last = {
        ...listener,
        moved() {
          resolve();
          return isThere;
        },
      };
      void following.follow(key, "default", last).then(() => {
        end = 6;
        bus.publish(key);
      });
    });
    await moved;
    const isRead = log.next(5) instanceof Promise;
    expect(isRead).toBe(isThere);
  });
});
