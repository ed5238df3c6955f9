// The built-in agent's place in the server. It writes through the same writer as any producer and learns of people's
// wishes from the log, as any producer does; the gateway only hands it the runs that are its own to write.

import { buffer } from "node:stream/consumers";
import type { Facts, StoredEvent, View } from "@runwire/protocol";
import type { CountedBlobs } from "./blobs/counted.js";
import type { Bus } from "./bus.js";
import type { Clock } from "./clock.js";
import type { Ingest } from "./ingest.js";
import type { Head, RunRecord } from "./log/head.js";
import type { Report } from "./report.js";
import type { RunKey, Store } from "./store.js";

export interface Agent {
  /** Whether its runs show a plan first, where nobody says otherwise. */
  readonly planningGate: RunRecord["planning_gate"];
  /** A run that was just created, or that was live when the server started. It is the agent's from here on. */
  take(run: RunKey): void;
  /** Refuses, with a RunwireError, a run that it could not write: no such model, no such tools. */
  check(asked: { readonly model: string | null; readonly tools?: readonly string[] }): Promise<void>;
  /** Refuses arguments that this tool of its would not take. */
  checkInput(tool: string, input: Facts): Promise<void>;
  /** Stops writing. What is not finished goes on after the next start. */
  close(): Promise<void>;
}

export type MakeAgent = (host: AgentHost) => Agent;

export interface AgentHost {
  readonly clock: Clock;
  readonly writer: Pick<Ingest, "append" | "spawn" | "change">;
  head(run: RunKey): Promise<Head | undefined>;
  /** Root runs of a tenant, newest first. */
  runs: Store["listRuns"];
  /** Everything after a position, and then whatever follows, until the signal aborts. */
  follow(run: RunKey, view: View, after: number, signal: AbortSignal): AsyncIterable<readonly StoredEvent[]>;
  /** What was spilled from an event of this tenant. */
  blob(tenant: string, ref: string): Promise<Buffer | undefined>;
  /** Tools that people have approved for more than one call. */
  readonly allowances: Store["allowances"];
  /** A folder of the server's own, for workspaces. */
  readonly dataFolder: string;
  readonly report: Report;
}

/** An event's members are bounded, and so is what was spilled of them. */
export async function wholeBlob(
  blobs: CountedBlobs,
  tenant: string,
  ref: string,
): Promise<Buffer | undefined> {
  const opened = await blobs.open(tenant, ref);
  return opened === undefined ? undefined : buffer(opened.body);
}

const readBytesMax = 256 * 1024;

/** The same loop as every reader's: read after the cursor; nothing there, wait until the log moves. */
export function follower(store: Store, bus: Bus): AgentHost["follow"] {
  return async function* follow(run, view, after, signal) {
    let at = after;
    let wake = (): void => {};
    let moved = false;
    const ring = (): void => {
      moved = true;
      wake();
    };
    // Listen before the first read: an append between the two still rings.
    const stop = bus.listen(run, ring);
    signal.addEventListener("abort", ring);
    try {
      while (!signal.aborted) {
        moved = false;
        const events = await store.read(run, view, at, readBytesMax);
        const last = events.at(-1);
        if (last !== undefined) {
          at = last.pos;
          yield events;
        } else if (!moved) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    } finally {
      signal.removeEventListener("abort", ring);
      stop();
    }
  };
}
