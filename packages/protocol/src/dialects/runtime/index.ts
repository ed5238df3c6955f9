// The runtime event stream: execution facts in a normalised envelope. The cursor is the dialect's own: `sequence` counts
// the messages of one run's stream.

import type { Dialect, Message } from "../../dialect.js";
import { decoder, jsonRpcDecoder } from "./decode.js";
import { step } from "./encode.js";
import { open } from "./snapshot.js";
import { firstState, type RuntimeState } from "./state.js";
import { runtimeSchemaVersion, strictSchemaVersion } from "./types.js";

export const runtime: Dialect<RuntimeState> = {
  name: "runtime",
  carries: "all",
  cursor: { last: ({ last }) => last },
  backpressure: "lossless",
  first: firstState,
  step,
  open,
  close: (_state, close, { last }) => (close === "finished" && last !== undefined ? [last] : []),
  decoder,
};

/** The same stream under the version that readers of the strict profile ask for; nothing else of it differs. */
export const runtimeStrict: Dialect<RuntimeState> = {
  ...runtime,
  name: "runtime-strict",
  step(state, e) {
    const [next, messages] = step(state, e);
    return [next, messages.map(strictly)];
  },
  open: (state, opening) => open(state, opening).map(strictly),
};

const plainVersion = `"schemaVersion":"${runtimeSchemaVersion}"`;
const strictVersion = `"schemaVersion":"${strictSchemaVersion}"`;

/** The first is the message's own: what comes before it holds no quotes that are not escaped. */
function strictly(message: Message): Message {
  return { ...message, data: message.data.replace(plainVersion, strictVersion) };
}

/** The method of the notifications. */
const method = "event";

/** The same stream, each message as a JSON-RPC 2.0 notification. */
export const runtimeJsonRpc: Dialect<RuntimeState> = {
  ...runtime,
  name: "runtime-jsonrpc",
  step(state, e) {
    const [next, messages] = step(state, e);
    return [next, messages.map(notification)];
  },
  open: (state, opening) => open(state, opening).map(notification),
  decoder: () => jsonRpcDecoder(method),
};

function notification(message: Message): Message {
  return { ...message, data: `{"jsonrpc":"2.0","method":"${method}","params":${message.data}}` };
}
