import fc from "fast-check";
import { expect, test } from "vitest";
import { wireNames } from "./wire-names.js";

const name = fc.oneof(
  fc.stringMatching(/^[a-z._]{1,4}$/),
  fc.string({ maxLength: 90 }),
  fc.stringMatching(/^[a-zA-Z0-9_-]{1,64}$/),
);

test("every name gets one that providers take, no two the same, and comes back as it was", () => {
  fc.assert(
    fc.property(fc.uniqueArray(name, { maxLength: 30 }), (names) => {
      const wire = wireNames(names);
      const outs = names.map(wire.out);
      for (const out of outs) expect(out).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
      expect(new Set(outs).size).toBe(names.length);
      expect(outs.map(wire.back)).toEqual(names);
    }),
  );
});

test("a name does not change with the order of the others", () => {
  fc.assert(
    fc.property(fc.uniqueArray(name, { minLength: 1, maxLength: 10 }), (names) => {
      const [a, b] = [wireNames(names), wireNames([...names].reverse())];
      expect(names.map(a.out)).toEqual(names.map(b.out));
    }),
  );
});

test("a good name stays itself, even where another would come to the same", () => {
  const { out } = wireNames(["web.fetch", "web_fetch"]);
  expect(out("web_fetch")).toBe("web_fetch");
  expect(out("web.fetch")).toMatch(/^web_fetch_[0-9a-f]{8}$/);
  expect(wireNames(["web.fetch"]).out("web.fetch")).toBe("web_fetch");
});
