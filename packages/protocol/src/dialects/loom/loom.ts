// Loom's streaming output: nodes, chunks, tools, trees and graphs of thought, and the reply that ends a run. It counts
// its messages in `event_id`, from 1. The export form says the same with one member an object.

import { type Decoder, type Dialect, snapshotMessage } from "../../dialect.js";
import type { EventType, Facts } from "../../events.js";
import { type LoomDecoder, loomDecoder, parsed } from "./decode.js";
import { type LoomMessage, speak } from "./encode.js";
import { fromExport, toExport } from "./export.js";
import { firstState, type LoomState } from "./state.js";
import { loomNames } from "./words.js";

const carries: ReadonlySet<EventType> = new Set(loomNames.keys());

function dialect(
  name: string,
  write: (message: LoomMessage) => object,
  read: (message: Facts) => readonly [message: Facts, members?: Facts],
): Dialect<LoomState> {
  return {
    name,
    carries,
    cursor: { last: ({ said }) => said },
    backpressure: "lossless",
    first: firstState,
    step(state, e) {
      const [after, messages] = speak(state, e);
      return [
        after,
        messages.map((message) => ({
          id: String(message.envelope.event_id),
          data: JSON.stringify(write(message)),
        })),
      ];
    },
    open: ({ said }, opening) => snapshotMessage(said, opening),
    close: (_state, close, { last }) => (close === "finished" && last !== undefined ? [last] : []),
    decoder: () => decoderOf(loomDecoder()),
    decoderAfter: (state) => decoderOf(loomDecoder(state)),
  };

  function decoderOf({ decode, runs }: LoomDecoder): Decoder {
    // A stream without its reply is a run that was cut off; nothing is made up for it.
    return { decode: ({ data }) => decode(...read(parsed(data))), end: () => [], runs };
  }
}

export const loom = dialect(
  "loom",
  // A namespace is part of the export form alone.
  ({ envelope, message: { namespace: _, ...message } }) => ({ ...envelope, ...message }),
  (message) => [message],
);

export const loomExport = dialect("loom-export", toExport, fromExport);
