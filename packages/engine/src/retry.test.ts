import fc from "fast-check";
import { expect, test } from "vitest";
import type { Clock } from "./clock.js";
import { limits } from "./limits.js";
import { type Model, ModelFailure, type ModelPart, type ModelUsage } from "./model.js";
import { type FailedTry, streamWithRetries } from "./retry.js";
import { hearAll, never, plainRequest } from "./testing/under-test.js";

const used = (n: number): ModelUsage => ({
  input_tokens: n,
  output_tokens: n,
  reasoning_tokens: 0,
  cached_tokens: 0,
});
const finished: ModelPart = { kind: "finished", reason: "stop", usage: used(100), refs: {} };

/** Time passes only by being waited for. */
function quickClock(): Clock & { readonly waits: number[] } {
  const waits: number[] = [];
  let nowMs = 0;
  return {
    waits,
    nowMs: () => nowMs,
    after(delayMs, ring) {
      waits.push(delayMs);
      nowMs += delayMs;
      queueMicrotask(ring);
      return () => {};
    },
  };
}

/** Says the rest of the text from its partial, and fails after so many characters of each try. */
function faltering(
  text: string,
  failures: readonly { readonly afterChars: number; readonly failure: ModelFailure }[],
) {
  const partials: string[] = [];
  const model: Model = {
    name: "faltering",
    provider: "test",
    takesPrefill: true,
    async *stream({ partial }) {
      const fault = failures[partials.length];
      partials.push(partial);
      const rest = text.slice(partial.length);
      for (const letter of fault === undefined ? rest : rest.slice(0, fault.afterChars)) {
        yield { kind: "text", text: letter };
      }
      yield { kind: "call", call_id: `call_${partials.length}`, tool: "t", input: {} };
      if (fault !== undefined) throw fault.failure;
      yield finished;
    },
  };
  return { model, partials };
}

function tries(clock: Clock, random = () => 0.5) {
  const failed: FailedTry[] = [];
  return {
    failed,
    options: { signal: never, clock, random, onFailed: (one: FailedTry) => void failed.push(one) },
  };
}

test("however often it breaks off, the text is whole, every call is made once and every try is told", async () => {
  const kind = fc.constantFrom(
    "rate-limit" as const,
    "overloaded" as const,
    "timeout" as const,
    "broken" as const,
  );
  const fault = fc.record({ afterChars: fc.nat(8), kind, used: fc.nat(50) });
  await fc.assert(
    fc.asyncProperty(
      fc.string(),
      fc.array(fault, { maxLength: limits.triesMax - 1 }),
      async (text, faults) => {
        const failures = faults.map(({ afterChars, kind, used: n }) => ({
          afterChars,
          failure: new ModelFailure(kind, "no", 0, { usage: used(n) }),
        }));
        const { model } = faltering(text, failures);
        const { failed, options } = tries(quickClock());
        const heard = await hearAll(streamWithRetries(model, plainRequest, options));
        expect(heard.text).toBe(text);
        expect(heard.calls.length).toBe(1);
        expect(heard.finished?.usage).toEqual(used(100));
        expect(failed.map(({ failure, try: n }) => [failure, n])).toEqual(
          failures.map(({ failure }, i) => [failure, i + 1]),
        );
      },
    ),
  );
});

const fail = (kind: ModelFailure["kind"], retryMs = 0) => ({
  afterChars: 0,
  failure: new ModelFailure(kind, "no", retryMs),
});

test("after five tries it gives up with the last failure", async () => {
  const { model, partials } = faltering(
    "text",
    Array.from({ length: 9 }, () => fail("overloaded")),
  );
  const { failed, options } = tries(quickClock());
  await expect(hearAll(streamWithRetries(model, plainRequest, options))).rejects.toMatchObject({
    kind: "overloaded",
  });
  expect(partials.length).toBe(5);
  expect(failed.map(({ waitMs }) => waitMs === null)).toEqual([false, false, false, false, true]);
});

test.each(["unauthorized", "refused"] as const)("what is %s is not tried again", async (kind) => {
  const { model, partials } = faltering("text", [fail(kind)]);
  const { options } = tries(quickClock());
  await expect(hearAll(streamWithRetries(model, plainRequest, options))).rejects.toMatchObject({ kind });
  expect(partials.length).toBe(1);
});

test("waits grow, are shaken, and are never shorter than the provider asked for", async () => {
  const clock = quickClock();
  const { model } = faltering("text", [
    fail("broken"),
    fail("rate-limit", 7000),
    fail("broken"),
    fail("broken"),
  ]);
  const { failed, options } = tries(clock);
  await hearAll(streamWithRetries(model, plainRequest, options));
  expect(clock.waits).toEqual([250, 7000, 1000, 2000]);
  expect(failed.map(({ waitMs }) => waitMs)).toEqual(clock.waits);
});

test("a provider that asks for longer than anybody waits is given up at once", async () => {
  const { model, partials } = faltering("text", [fail("rate-limit", limits.triesMsMax + 1)]);
  const { options } = tries(quickClock());
  const failure = await hearAll(streamWithRetries(model, plainRequest, options)).catch(
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({ kind: "rate-limit", retryMs: limits.triesMsMax + 1 });
  expect(partials.length).toBe(1);
});

test("whoever aborts between two tries is not kept waiting", async () => {
  const { model, partials } = faltering("text", [fail("rate-limit", 60_000)]);
  const controller = new AbortController();
  const clock: Clock = { nowMs: () => 0, after: () => () => {} };
  const onFailed = () => queueMicrotask(() => controller.abort(new Error("enough")));
  const options = { signal: controller.signal, clock, random: () => 0, onFailed };
  await expect(hearAll(streamWithRetries(model, plainRequest, options))).rejects.toThrow("enough");
  expect(partials.length).toBe(1);
});

test("an answer with more calls than anybody makes is refused, and what it used up is told", async () => {
  const model: Model = {
    name: "eager",
    provider: "test",
    takesPrefill: true,
    async *stream() {
      for (let n = 0; n <= limits.callsPerAnswerMax; n++)
        yield { kind: "call", call_id: `call_${n}`, tool: "t", input: {} };
      yield finished;
    },
  };
  const { failed, options } = tries(quickClock());
  await expect(hearAll(streamWithRetries(model, plainRequest, options))).rejects.toMatchObject({
    kind: "refused",
  });
  expect(failed).toMatchObject([{ failure: { usage: used(100) }, waitMs: null, hadBegun: true }]);
});

test("an answer that ends without saying so is tried again", async () => {
  let asked = 0;
  const model: Model = {
    name: "forgetful",
    provider: "test",
    takesPrefill: true,
    async *stream() {
      asked += 1;
      if (asked > 1) yield finished;
    },
  };
  const { failed, options } = tries(quickClock());
  await hearAll(streamWithRetries(model, plainRequest, options));
  expect(failed).toMatchObject([{ failure: { kind: "broken" }, try: 1 }]);
});

test("a bug is not taken for a failure of the provider", async () => {
  const model: Model = {
    name: "buggy",
    provider: "test",
    takesPrefill: true,
    // biome-ignore lint/correctness/useYield: it never gets that far
    async *stream() {
      throw new TypeError("bug");
    },
  };
  const { options } = tries(quickClock());
  await expect(hearAll(streamWithRetries(model, plainRequest, options))).rejects.toThrow(TypeError);
});
