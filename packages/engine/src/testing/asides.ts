// What the agent asks for beside its answers, told apart by its words, so that a script need only think of the answers.

import type { FakeRequest, Turn } from "./fake-provider.js";
import { plainAnswer } from "./wires/answer.js";

export const asideTitle = "A warm welcome";
export const asideSuggestions = ["And now?", "Why?"];
export const asideUsage = { input: 11, cached: 0, output: 3, reasoning: 0 };

function asideOf({ body }: FakeRequest): "title" | "suggestions" | undefined {
  const text = JSON.stringify(body);
  if (text.includes("Name this conversation")) return "title";
  return text.includes("that I might send next") ? "suggestions" : undefined;
}

/** A script whose turns are numbered without what is asked aside, which is answered as `aside` says. */
export function answering(
  turn: (request: FakeRequest, n: number) => Turn,
  aside: (kind: "title" | "suggestions") => Turn = toldAside,
): (request: FakeRequest) => Turn {
  let n = 0;
  return (request) => {
    const kind = asideOf(request);
    return kind === undefined ? turn(request, n++) : aside(kind);
  };
}

function toldAside(kind: "title" | "suggestions"): Turn {
  const text = kind === "title" ? `"${asideTitle}."\n` : asideSuggestions.map((one) => `- ${one}`).join("\n");
  return { kind: "answer", answer: { ...plainAnswer, text, usage: asideUsage } };
}
