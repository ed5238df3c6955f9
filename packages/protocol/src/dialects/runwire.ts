// The log itself: every type, the whole envelope. The cursor is `pos`. SDKs, producers and tools speak it.

import { type LogDialect, type Message, snapshotMessage } from "../dialect.js";
import { parseWireDraft } from "../parse.js";
import { runwireText } from "../stored-event.js";
import { parseJson } from "./koder.js";

const nothing: readonly Message[] = [];

export const runwire: LogDialect = {
  name: "runwire",
  carries: "all",
  cursor: "pos",
  says: "line",
  backpressure: "lossless",
  first: null,
  step: (_state, e) => [null, [{ id: String(e.pos), data: runwireText(e) }]],
  open: (_state, opening) => snapshotMessage("pos", opening),
  close: (_state, close, { last }) => (close === "finished" && last !== undefined ? [last] : nothing),
  decoder: () => ({ decode: (message) => [parseWireDraft(parseJson(message.data))], end: () => [] }),
};
