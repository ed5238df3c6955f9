// An answer cut all over: at so many of its bytes, evenly, and at other ones each time, so that what is found is not
// always the same and the time it takes does not depend on how long an answer is. Which byte is asked for in the
// request, so that many can be asked for at once.

import { type ChatMessage, ModelFailure, type ModelPart, type ModelRequest } from "../model.js";
import type { FakeProvider, Turn } from "./fake-provider.js";
import { type Heard, hearAll, plainRequest } from "./under-test.js";
import { type FakeAnswer, plainAnswer } from "./wires/answer.js";

export const cutAnswer: FakeAnswer = {
  ...plainAnswer,
  reasoning: "Hm.",
  text: "Grüße, 世界!\n\nLook: 🎉",
  calls: [{ call_id: "call_1", tool: "web_fetch", args: '{"url":"é"}' }],
  finish: "calls",
  deltaChars: 4,
};

/** The first try of each request is cut at the byte that it names; the next ones go on from where it was. */
export function scriptCuts(fake: FakeProvider, how: "clean" | "line"): void {
  const tried = new Set<number>();
  fake.script(({ body, partial }): Turn => {
    const afterBytes = Number(/cut at (\d+)/.exec(JSON.stringify(body))?.[1]);
    if (!tried.has(afterBytes)) {
      tried.add(afterBytes);
      return { kind: "answer", answer: cutAnswer, cut: { afterBytes, how } };
    }
    if (!cutAnswer.text.startsWith(partial)) throw new Error(`nobody said ${partial}`);
    return { kind: "answer", answer: { ...cutAnswer, text: cutAnswer.text.slice(partial.length) } };
  });
}

export interface Cut {
  readonly heard: Heard | undefined;
  readonly failure: ModelFailure | undefined;
}

const isSoak = process.env.RUNWIRE_SOAK !== undefined;
/** A cut takes some 30 ms of a busy core: that makes half a minute, or three seconds. */
const cutsMax = isSoak ? 1000 : 100;

/** A guard, at many times that. */
export const cutsMsMax = isSoak ? 600_000 : 120_000;

/** Asks for cuts all over an answer of that length, several at once; gives how many. */
export async function cutEverywhere(
  bytes: number,
  stream: (request: ModelRequest) => AsyncIterable<ModelPart>,
  check: (cut: Cut) => void,
): Promise<number> {
  const stride = Math.max(1, Math.ceil(bytes / cutsMax));
  const first = Math.floor(Math.random() * stride);
  const left = Array.from({ length: Math.ceil((bytes + 1 - first) / stride) }, (_, i) => first + i * stride);
  const work = async (): Promise<void> => {
    for (let at = left.pop(); at !== undefined; at = left.pop()) {
      const message: ChatMessage = { role: "user", content: `cut at ${at}` };
      let sofar: Heard | undefined;
      const failure = await hearAll(stream({ ...plainRequest, messages: [message] }), (now) => {
        sofar = now;
      }).then(
        () => undefined,
        (error: unknown) => {
          if (error instanceof ModelFailure) return error;
          throw error;
        },
      );
      try {
        check({ heard: sofar, failure });
      } catch (error) {
        throw new Error(`cut at byte ${at} of ${bytes}`, { cause: error });
      }
    }
  };
  const cuts = left.length;
  await Promise.all(Array.from({ length: 8 }, work));
  return cuts;
}
