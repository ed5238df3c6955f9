// A run as its wire has it, one object a line: for programs. The log is followed as it is and said here, so that every
// dialect is read by one way, across reconnects too.

import { type Endpoint, follow, sseSource } from "@runwire/client";
import { type Dialect, endsRun, type FinalState } from "@runwire/protocol";
import { onLoss, sayLoss } from "./loss.js";

export interface WireOptions {
  readonly dialect: Dialect;
  readonly full: boolean;
  readonly signal: AbortSignal;
}

export interface WireListener {
  /** All that one event is said in; each has its line break. */
  lines(text: string): void;
  /** What was said belongs to a log that is no more; another begins. */
  reset?(): void;
}

/** How the run ended. What a wire has no words for, that it is not whole or begins anew, is said on stderr. */
export async function followWire(
  endpoint: Endpoint,
  run_id: string,
  { dialect, full, signal }: WireOptions,
  to: WireListener,
): Promise<FinalState | null> {
  let state = dialect.first;
  let end: FinalState | null = null;
  const source = sseSource({
    ...endpoint,
    run_id,
    dialect: "runwire",
    backpressure: "lossless",
    ...(full ? { detail: "full" } : {}),
  });
  const onStatus = onLoss((isLost) => sayLoss(endpoint.base, isLost));
  for await (const item of follow(source, { signal, onStatus })) {
    if (item.kind === "gap")
      process.stderr.write(`runwire: events ${item.from} to ${item.to} are missing and could not be had\n`);
    if (item.kind === "reset") {
      process.stderr.write("runwire: the server has another log of this run now; from its start\n");
      state = dialect.first;
      to.reset?.();
    }
    if (item.kind !== "event") continue;
    const [next, messages] = dialect.step(state, item.event);
    state = next;
    if (messages.length > 0) to.lines(messages.map(({ data }) => `${data}\n`).join(""));
    if (endsRun(item.event)) end = item.event.payload.state;
  }
  return end;
}
