// A run as its wire has it, one object a line: for programs.

import { type Endpoint, follow, sseSource } from "@runwire/client";
import { endsRun, is, koder, type LogDialect, runwire } from "@runwire/protocol";
import type { Timeline } from "./timeline.js";

export interface WireOptions {
  readonly dialect: "koder" | "runwire";
  readonly full: boolean;
  readonly signal: AbortSignal;
}

export async function printWire(
  endpoint: Endpoint,
  run_id: string,
  { dialect, full, signal }: WireOptions,
): Promise<Timeline["end"]> {
  const said: LogDialect = dialect === "koder" ? koder : runwire;
  let state = said.first;
  let end: Timeline["end"] = null;
  const source = sseSource({
    ...endpoint,
    run_id,
    dialect,
    backpressure: "lossless",
    ...(full ? { detail: "full" } : {}),
  });
  for await (const item of follow(source, { signal })) {
    if (item.kind === "reset") state = said.first;
    if (item.kind !== "event") continue;
    const [next, messages] = said.step(state, item.event);
    state = next;
    for (const { data } of messages) process.stdout.write(`${data}\n`);
    if (endsRun(item.event) && is(item.event, "run.lifecycle")) {
      end = item.event.payload.state as Timeline["end"];
    }
  }
  return end;
}
