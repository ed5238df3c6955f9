import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { idSource, isId, timeOf, ulidOf } from "./ids.js";

const ulid = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const timeMsMax = 2 ** 48 - 1;

const random = fc.oneof(
  fc.constant(() => 0),
  fc.constant(() => 1 - Number.EPSILON),
  fc.constant(Math.random),
);

// Clocks that tick around one moment, and clocks gone mad: after one leap ahead, all else is behind.
const near = fc.oneof(
  fc.integer({ min: 1_700_000_000_000, max: 1_700_000_000_005 }),
  fc.nat(4096).map((fraction) => 1_700_000_000_000 + fraction / 2048),
);
const mad = fc.oneof(
  near,
  fc.integer({ min: 0, max: timeMsMax }),
  fc.constantFrom(-1, -1e15, 0, timeMsMax, timeMsMax + 1, 2 ** 51, Number.POSITIVE_INFINITY, Number.NaN),
);

const raised = fc.oneof(
  fc.integer({ min: 1_700_000_000_000, max: 1_700_000_000_005 }),
  fc.integer({ min: 0, max: timeMsMax - 1 }),
);

describe("ids", () => {
  it("ascend whatever the clock does, and above every id they were raised to [RW-ID-1] [RW-ID-2]", () => {
    const raises = fc
      .tuple(raised, fc.constantFrom("0", "7", "Z"))
      .map(([ms, digit]) => ({ raise: idOf(ms, digit) }));
    const asks = (clock: fc.Arbitrary<number>) => clock.map((nowMs) => ({ nowMs }));
    const moves = fc.oneof(
      fc.array(asks(near), { maxLength: 40 }),
      fc.array(fc.oneof(asks(mad), raises), { maxLength: 40 }),
    );
    fc.assert(
      fc.property(random, moves, (draw, list) => {
        const source = idSource(draw);
        let floor = "";
        for (const move of list) {
          if ("raise" in move) {
            source.raise(move.raise);
            floor = max(floor, move.raise.slice(4));
            continue;
          }
          const id = source.next("evt", move.nowMs);
          expect(id.slice(0, 4)).toBe("evt_");
          expect(id.slice(4)).toMatch(ulid);
          expect(id.slice(4) > floor, `${id.slice(4)} > ${floor}`).toBe(true);
          floor = id.slice(4);
        }
      }),
    );
  });

  it("carry the time at which they were given, if the clock is sane", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: timeMsMax }), (nowMs) => {
        const id = idSource(Math.random).next("run", nowMs);
        expect(timeOf(ulidOf(id) ?? "")).toBe(nowMs);
      }),
    );
  });

  it("carry over into the next millisecond when one is used up", () => {
    const source = idSource(Math.random);
    source.raise(idOf(5, "Z"));
    expect(source.next("evt", 5)).toBe(idOf(6, "0"));
  });

  it("are not raised by what is no id", () => {
    const source = idSource(() => 0);
    const before = source.next("evt", 1000);
    for (const noise of [
      "",
      "evt_",
      "evt_zzz",
      "evt_8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
      "run_a_b",
      `evt_${"I".repeat(26)}`,
    ]) {
      source.raise(noise);
    }
    expect(timeOf(ulidOf(source.next("evt", 1000)) ?? "")).toBe(timeOf(ulidOf(before) ?? ""));
  });
});

describe("ids that a caller chooses", () => {
  it("hold nothing that could break a line, a header, a path or a label [RW-ID-3]", () => {
    fc.assert(fc.property(fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/), (id) => isId(id)));
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        (text) => isId(text) === /^[a-z\d][\w.:-]{0,127}$/i.test(text),
      ),
    );
    for (const bad of [
      "",
      "_a",
      ".a",
      "-a",
      "a b",
      "a/b",
      "a\n",
      "a\r",
      "a\0",
      "é",
      "a".repeat(129),
      "__proto__",
    ]) {
      expect(isId(bad), JSON.stringify(bad)).toBe(false);
    }
    for (const bad of [null, undefined, 7, {}, ["a"]]) expect(isId(bad)).toBe(false);
    expect(isId("a".repeat(128))).toBe(true);
  });
});

function max(a: string, b: string): string {
  return a > b ? a : b;
}

/** An id of this millisecond whose other digits are all the same. */
function idOf(ms: number, digit: string): string {
  const head = idSource(Math.random)
    .next("evt", ms || 1)
    .slice(4, 14);
  return `evt_${ms === 0 ? "0000000000" : head}${digit.repeat(16)}`;
}
