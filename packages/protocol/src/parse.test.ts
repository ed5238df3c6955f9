import { describe, expect, it } from "vitest";
import { RunwireError } from "./errors.js";
import { eventTypes, type NamedType } from "./events.js";
import { limits } from "./limits.js";
import { parseDraft, parseWireDraft, unfitJson } from "./parse.js";

// What each kind of member takes, and what it must refuse.
const kinds: { readonly [kind: string]: { readonly good: unknown; readonly bad: readonly unknown[] } } = {
  string: { good: "", bad: [1, {}, [], true] },
  boolean: { good: false, bad: [0, "true", {}] },
  number: { good: 0.5, bad: ["1", {}, true] },
  count: { good: 0, bad: [-1, 1.5, 2 ** 53, "1", true] },
  strings: { good: [""], bad: [[1], "a", {}, [null]] },
  id: { good: "call_1", bad: ["", "a b", "a\n", "__proto__", "a".repeat(129), 1, {}] },
  time: {
    good: "2026-05-14T19:42:13.124Z",
    bad: ["", "1", "tomorrow", "2026-05-14", "2026-13-01T00:00:00Z", 5],
  },
  state: { good: "running", bad: ["", "Running", "constructor", 1] },
  failure: { good: "KAI-TOOL-RUN-0001", bad: [1, {}, { code: 1 }, [], true] },
  plan: {
    good: { id: "plan_1", steps: [{ id: "s1", title: "t", intent: "write" }] },
    bad: [
      {},
      "plan",
      [],
      { id: "plan_1" },
      { id: "", steps: [] },
      { id: "plan_1", steps: [{ id: "s1" }] },
      { id: "plan_1", steps: [null] },
      { id: "plan_1", steps: [{ id: "s1", title: "t", intent: "dance" }] },
      { id: "plan_1", steps: [{ id: "s1", title: "t", est_tools: [1] }] },
      { id: "plan_1", steps: [{ id: "s1", title: "t", est_cost_usd: "1" }] },
      { id: "plan_1", steps: [], run_id: 7 },
    ],
  },
  "plan|tool-roundtrip|text-only|fan-out|fan-in|done": { good: "fan-in", bad: ["", "fanin", "plan|done", 1] },
};

const types = Object.keys(eventTypes) as NamedType[];
const checked = types.flatMap((type) =>
  Object.entries(eventTypes[type].members).map(([member, kindText]) => {
    const optional = kindText.endsWith("?");
    const kind = kinds[optional ? kindText.slice(0, -1) : kindText];
    if (kind === undefined) throw new Error(`this test does not know the kind ${kindText}`);
    return { type, member, optional, ...kind };
  }),
);

describe("a draft", () => {
  it.each(types)("%s passes with no more than its required members [RW-DRAFT-1]", (type) => {
    const payload = leastPayload(type);
    expect(parseDraft({ type, payload })).toEqual({ type, payload });
  });

  it.each(checked)(
    "$type is refused when `$member` is wrong [RW-DRAFT-2]",
    ({ type, member, optional, bad }) => {
      const payload = leastPayload(type);
      for (const value of bad) {
        expect(refusal({ type, payload: { ...payload, [member]: value } })).toMatch(
          new RegExp(`^malformed event: line 3: ${type}: \`${member}\` must be `),
        );
      }
      for (const absent of [null, undefined]) {
        const draft = { type, payload: { ...payload, [member]: absent } };
        if (optional) expect(parseDraft(draft)).toEqual(draft);
        else expect(refusal(draft)).toContain(`\`${member}\` must be `);
      }
    },
  );

  it("keeps the members that nobody knows [RW-DRAFT-3]", () => {
    const text =
      '{"type":"text.delta","payload":{"text":"a","__proto__":{"polluted":1},"constructor":2,"":3}}';
    expect(JSON.stringify(parseDraft(JSON.parse(text)))).toBe(text);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it("has no required member by inheritance [RW-DRAFT-2]", () => {
    const payload = Object.create({ text: "inherited" });
    expect(refusal({ type: "text.delta", payload })).toContain("`text` must be a string");
  });

  it.each([null, 1, "text.delta", [], true])("is never %j [RW-DRAFT-1]", (value) => {
    expect(refusal(value)).toContain("must be a JSON object with `type` and `payload`");
  });

  it.each([
    [{ payload: {} }, "`type`"],
    [{ type: 1, payload: {} }, "`type`"],
    [{ type: "custom" }, "`payload`"],
    [{ type: "custom", payload: null }, "`payload`"],
    [{ type: "custom", payload: [] }, "`payload`"],
    [{ type: "custom", payload: {}, child_id: "a b" }, "`child_id`"],
    [{ type: "custom", payload: {}, child_id: 1 }, "`child_id`"],
    [{ type: "custom", payload: {}, child_id: "" }, "`child_id`"],
    [{ type: "custom", payload: {}, scope: "a" }, "`scope`"],
    [{ type: "custom", payload: {}, scope: [] }, "`scope`"],
    [{ type: "custom", payload: {}, scope: { "Trace-Id": "a" } }, "`scope`"],
    [{ type: "custom", payload: {}, scope: { trace_id: "a\r" } }, "`scope.trace_id`"],
    [{ type: "custom", payload: {}, scope: { trace_id: 1 } }, "`scope.trace_id`"],
    [{ type: "custom", payload: {}, scope: manyKeys(33) }, "`scope`"],
    [{ type: "custom", payload: {}, scope: JSON.parse('{"__proto__":"a"}') }, "`scope`"],
  ])("%j is refused by the name of what is wrong [RW-DRAFT-2]", (value, member) => {
    expect(refusal(value)).toContain(member);
  });

  it.each(["", "text", "constructor", "__proto__", "toString", "x.a", "task.A", "a".repeat(10_000)])(
    "of type %j is unknown, which is another error than malformed [RW-TYPE-5]",
    (type) => {
      const failure = caught(() => parseDraft({ type, payload: {} }));
      expect(failure.code).toBe("KAI-STREAM-PROTO-0002");
      expect(failure.message.length).toBeLessThan(200);
    },
  );

  it("is refused with a number that overflows, anywhere inside [RW-DRAFT-4]", () => {
    for (const payload of ['{"a":1e400}', '{"a":[{"b":-1e999}]}', '{"__proto__":1e400}']) {
      expect(refusal({ type: "custom", payload: JSON.parse(payload) })).toContain(
        "`payload` holds a number that overflows",
      );
    }
    expect(unfitJson(JSON.parse("[1e308, 1e-400, -0]"))).toBeUndefined();
  });

  it(`is refused when it is nested deeper than ${limits.jsonDepthMax} [RW-DRAFT-4]`, () => {
    expect(parseDraft({ type: "custom", payload: nested(limits.jsonDepthMax) }).type).toBe("custom");
    expect(refusal({ type: "custom", payload: nested(limits.jsonDepthMax + 1) })).toContain("nested deeper");
    expect(refusal({ type: "custom", payload: nested(100_000) })).toContain("nested deeper");
  });

  it(`is refused with more than ${limits.jsonKeysMax} keys, counted over all its objects [RW-DRAFT-4]`, () => {
    const { jsonKeysMax } = limits;
    expect(parseDraft({ type: "custom", payload: manyKeys(jsonKeysMax) }).type).toBe("custom");
    expect(refusal({ type: "custom", payload: manyKeys(jsonKeysMax + 1) })).toContain("keys");
    const spread = { a: manyKeys(jsonKeysMax / 2), b: [manyKeys(jsonKeysMax / 2)] };
    expect(refusal({ type: "custom", payload: spread })).toContain("keys");
  });

  it("may hold a long array before its other members: items are not keys [RW-DRAFT-4]", () => {
    const payload = { items: new Array(limits.jsonKeysMax + 1).fill(0), more: { a: 1 } };
    expect(parseDraft({ type: "custom", payload }).payload).toBe(payload);
  });
});

describe("an event from the wire", () => {
  const wire = {
    id: "evt_1",
    ts: "2026-01-01T00:00:00+02:00",
    type: "custom",
    run_id: "run_1",
    pos: 4,
    seq: 0,
    payload: {},
  };

  it("keeps the numbers that it came with [RW-ENV-1]", () => {
    expect(parseWireDraft({ ...wire, child_id: null })).toEqual(wire);
    expect(parseWireDraft({ ...wire, child_id: "run_2", scope: { turn_id: "t" } })).toEqual({
      ...wire,
      child_id: "run_2",
      scope: { turn_id: "t" },
    });
  });

  it.each([
    { id: "evt 1" },
    { id: null },
    { run_id: "run\n1" },
    { ts: 5 },
    { ts: '2026","evil":"' },
    { pos: -1 },
    { pos: "4" },
    { seq: 1.5 },
    { seq: null },
  ])("is refused with %j, naming it [RW-DRAFT-2]", (wrong) => {
    const failure = caught(() => parseWireDraft({ ...wire, ...wrong }, "line 3"));
    expect(failure.code).toBe("KAI-STREAM-PROTO-0001");
    expect(failure.message).toContain(`\`${Object.keys(wrong)[0]}\``);
  });

  it("may have more keys and levels than a draft, and as many levels as any stack holds [RW-DRAFT-5]", () => {
    for (const payload of [
      manyKeys(limits.jsonKeysMax + 1),
      nested(limits.jsonDepthMax + 1),
      nested(limits.readDepthMax),
    ]) {
      expect(refusal({ type: "custom", payload })).toContain("`payload`");
      expect(parseWireDraft({ ...wire, payload }).payload).toBe(payload);
    }
    for (const levels of [limits.readDepthMax + 1, 100_000]) {
      const failure = caught(() => parseWireDraft({ ...wire, payload: nested(levels) }));
      expect(failure.code).toBe("KAI-STREAM-PROTO-0001");
      expect(failure.message).toContain(`nested deeper than ${limits.readDepthMax}`);
    }
    expect(caught(() => parseWireDraft({ ...wire, payload: { n: Number.POSITIVE_INFINITY } })).code).toBe(
      "KAI-STREAM-PROTO-0001",
    );
  });
});

function leastPayload(type: NamedType): { [member: string]: unknown } {
  const required = checked.filter((row) => row.type === type && !row.optional);
  return Object.fromEntries(required.map(({ member, good }) => [member, good]));
}

/** The message of a refusal that has to be PROTO-0001. */
function refusal(value: unknown): string {
  const failure = caught(() => parseDraft(value, "line 3"));
  expect(failure.code).toBe("KAI-STREAM-PROTO-0001");
  return failure.message;
}

function caught(action: () => unknown): RunwireError {
  try {
    action();
  } catch (failure) {
    if (failure instanceof RunwireError) return failure;
    throw failure;
  }
  throw new Error("nothing was thrown");
}

/** Objects and arrays in turn, an object outermost. */
function nested(depth: number): object {
  let inner: object = {};
  for (let level = depth - 1; level >= 1; level--) inner = level % 2 === 0 ? [inner] : { a: inner };
  return inner;
}

function manyKeys(count: number): { [member: string]: unknown } {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, "v"]));
}
