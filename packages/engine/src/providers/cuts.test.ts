import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../clock.js";
import { type FailedTry, streamWithRetries } from "../retry.js";
import { cutAnswer, cutEverywhere, cutsMsMax, scriptCuts } from "../testing/cuts.js";
import { type FakeProvider, fakeProvider } from "../testing/fake-provider.js";
import { kinds, modelOf, never } from "../testing/under-test.js";
import { anthropicWire } from "../testing/wires/anthropic.js";
import { chatWire } from "../testing/wires/chat.js";
import { responsesWire } from "../testing/wires/responses.js";

let fake: FakeProvider;
beforeAll(async () => {
  fake = await fakeProvider();
});
afterAll(() => fake.close());

const wires = {
  "anthropic with prefill": anthropicWire,
  anthropic: anthropicWire,
  openai: responsesWire,
  local: chatWire,
};
const whole = {
  text: cutAnswer.text,
  calls: [{ tool: "web.fetch", input: { url: "é" } }],
  finished: { reason: "calls" },
};

describe.each(kinds)("%s", (kind) => {
  const bytes = Buffer.byteLength(wires[kind].encode(cutAnswer, "some-model"));

  test("wherever an answer is cut off, it is whole or broken, and a broken one has made no call", {
    timeout: cutsMsMax,
  }, async () => {
    scriptCuts(fake, "line");
    const model = modelOf(kind, fake.url);
    let broken = 0;
    const cuts = await cutEverywhere(
      bytes,
      (request) => model.stream(request, never),
      ({ heard, failure }) => {
        if (failure === undefined) return expect(heard).toMatchObject(whole);
        broken += 1;
        expect(failure.kind).toBe("broken");
        expect(heard?.calls ?? []).toEqual([]);
        expect(cutAnswer.text.startsWith(heard?.text ?? "")).toBe(true);
      },
    );
    expect(broken).toBeGreaterThan(cuts / 2);
  });

  test("wherever an answer breaks off, the tries after it make it whole", {
    timeout: cutsMsMax,
  }, async () => {
    scriptCuts(fake, "clean");
    const model = modelOf(kind, fake.url);
    const failed: FailedTry[] = [];
    const tries = {
      signal: never,
      clock: systemClock,
      random: () => 0,
      onFailed: (one: FailedTry) => {
        failed.push(one);
      },
    };
    const cuts = await cutEverywhere(
      bytes,
      (request) => streamWithRetries(model, request, tries),
      ({ heard, failure }) => {
        expect(failure).toBeUndefined();
        expect(heard).toMatchObject(whole);
      },
    );
    expect(failed.length).toBeGreaterThan(cuts / 2);
    expect(new Set(failed.map(({ failure }) => failure.kind))).toEqual(new Set(["broken"]));
  });
});
