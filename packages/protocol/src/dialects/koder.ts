// The Koder agent stream protocol: the projection of a log to its eight core types. The cursor is `seq`.

import { type LogDialect, type Message, snapshotMessage } from "../dialect.js";
import { RunwireError } from "../errors.js";
import { coreTypes } from "../events.js";
import { isObject, parseWireDraft } from "../parse.js";
import { koderText } from "../stored-event.js";

const nothing: readonly Message[] = [];

export const koder: LogDialect = {
  name: "koder",
  carries: coreTypes,
  cursor: "seq",
  says: "payload",
  backpressure: "drop",
  first: null,

  step(_state, e) {
    return [null, coreTypes.has(e.type) ? [{ id: String(e.seq), data: koderText(e) }] : nothing];
  },

  open: (_state, opening) => snapshotMessage("seq", opening),

  // The loss is told on whichever terminal event ends this connection, and is not part of the log.
  close(_state, close, { dropped, last }) {
    if (close !== "finished" || last === undefined) return nothing;
    if (dropped === 0) return [last];
    const event = JSON.parse(last.data) as { payload: object };
    const payload = { ...event.payload, dropped_count: dropped, code: "KAI-STREAM-BUF-0001" };
    return [{ ...last, data: JSON.stringify({ ...event, payload }) }];
  },

  decoder: () => ({
    decode(message) {
      const value = parseJson(message.data);
      if (isObject(value) && typeof value.type === "string" && !coreTypes.has(value.type as never)) {
        throw new RunwireError(
          "KAI-STREAM-PROTO-0002",
          `${JSON.stringify(value.type.slice(0, 80))} is not a core type`,
        );
      }
      return [parseWireDraft(value)];
    },
    end: () => [],
  }),
};

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new RunwireError("KAI-STREAM-PROTO-0001", `not JSON (${(cause as Error).message})`, { cause });
  }
}
