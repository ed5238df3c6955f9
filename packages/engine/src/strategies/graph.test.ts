import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { graphIn, type Part } from "./graph.js";

const drawn = (nodes: readonly object[], known: readonly Part[] = []) =>
  graphIn(JSON.stringify({ nodes }), known, 5);

describe("a graph is read", () => {
  test("as it is where it is sound", () => {
    const { parts, mended } = drawn([
      { id: "a", task: "First" },
      { id: "b", task: "Then", depends_on: ["a"] },
    ]);
    expect(parts).toEqual([
      { id: "a", task: "First", deps: [] },
      { id: "b", task: "Then", deps: ["a"] },
    ]);
    expect(mended).toEqual([]);
  });

  test("without what it depends on and has not, and without circles, and says so", () => {
    const { parts, mended } = drawn([
      { id: "a", task: "A", depends_on: ["c", "x"] },
      { id: "b", task: "B", depends_on: ["a", "b"] },
      { id: "c", task: "C", depends_on: ["b"] },
    ]);
    expect(parts.map(({ deps }) => deps)).toEqual([["c"], ["a"], []]);
    expect(mended).toEqual([
      "a needs x, which is not there",
      "b needs b, which would be a circle",
      "c needs b, which would be a circle",
    ]);
  });

  test("with a name of its own for each part, and a list is one without edges", () => {
    const { parts } = drawn([{ id: "a", task: "A" }, { id: "a", task: "B" }, { task: "C" }]);
    expect(parts.map(({ id }) => id)).toEqual(["a", "n2", "n3"]);
    const known: Part[] = [{ id: "n1", task: "", deps: [] }];
    expect(graphIn("1. Look here\n2. Look there", known, 5).parts.map(({ id }) => id)).toEqual(["n2", "n3"]);
    expect(graphIn('{"nodes": []}\n- or so', [], 5).parts).toEqual([]);
  });
});

test("however it is drawn, it can be worked through", () => {
  const name = fc.constantFrom("a", "b", "c", "d", "", " ", "__proto__", "a b", 1, null, {});
  const node = fc.record(
    {
      id: name,
      task: fc.constantFrom("Do it", "", 7, "x".repeat(9000)),
      depends_on: fc.oneof(fc.array(name, { maxLength: 5 }), name),
    },
    { requiredKeys: [] },
  );
  const known: Part[] = [{ id: "d", task: "D", deps: [] }];
  fc.assert(
    fc.property(fc.array(fc.oneof(node, name), { maxLength: 12 }), (nodes) => {
      const { parts, mended } = graphIn(JSON.stringify({ nodes }), known, 5);
      expect(parts.length).toBeLessThanOrEqual(5);
      const ids = [...known, ...parts].map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
      // Each can be done once all that it needs is.
      const done = new Set(["d"]);
      for (let left = [...parts]; left.length > 0; ) {
        const ready = left.filter(({ deps }) => deps.every((dep) => done.has(dep)));
        expect(ready).not.toEqual([]);
        for (const { id } of ready) done.add(id);
        left = left.filter(({ id }) => !done.has(id));
      }
      for (const what of mended) expect(what).not.toMatch(/\n/);
    }),
  );
});
