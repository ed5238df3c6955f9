// What a provider refuses it may take in another form. It is asked in that form then, and from then on.

import { type ChatMessage, type Model, ModelFailure, type ModelPart } from "../model.js";

export function orElse(model: Model, other: Model, isReason: (failure: ModelFailure) => boolean): Model {
  let isRefused = false;
  return {
    ...model,
    async *stream(request, signal): AsyncGenerator<ModelPart, void, undefined> {
      try {
        if (!isRefused) return yield* model.stream(request, signal);
      } catch (error) {
        isRefused = error instanceof ModelFailure && isReason(error);
        if (!isRefused) throw error;
      }
      yield* other.stream(request, signal);
    },
  };
}

const reply: ChatMessage = { role: "assistant", content: "I have the results.", calls: [] };

/** The model has said a word between results and what a person says next. */
export function replying(model: Model): Model {
  const withReply = (
    message: ChatMessage,
    i: number,
    all: readonly ChatMessage[],
  ): readonly ChatMessage[] => {
    const isBehind = message.role === "user" && all[i - 1]?.role === "tool";
    return isBehind && message.content.trim() !== "" ? [reply, message] : [message];
  };
  return {
    ...model,
    stream: (request, signal) =>
      model.stream({ ...request, messages: request.messages.flatMap(withReply) }, signal),
  };
}
