// A run held open for a view: the transcript so far, and a call whenever it changed. `subscribe` and
// `getSnapshot` are what React's useSyncExternalStore takes, and any other view can use.

import { type Event, emptyTranscript, reduceAll, type Transcript } from "@runwire/protocol";
import { type FollowOptions, followInBatches } from "./follow.js";
import type { Followed } from "./reader.js";
import type { Status } from "./reconnect.js";
import type { RunStreamOptions } from "./sources/run-stream.js";
import type { Source } from "./sources/source.js";
import { sseSource } from "./sources/sse.js";

export interface RunView {
  readonly transcript: Transcript;
  readonly connection: Status | Closed;
  /** Events that were not sent and could not be had. */
  readonly missing: number;
  /** Events of types that this client does not know. */
  readonly unknown: number;
}

/** Nothing more will come: the run ended, `close` was called, or `error` says why not. */
interface Closed {
  readonly state: "closed";
  readonly error: unknown;
}

export interface OpenRun {
  /** Calls the listener after every change, once for all that arrived together. Returns how to stop. */
  subscribe(listener: () => void): () => void;
  /** The same object until something changed. */
  getSnapshot(): RunView;
  /** Stops reading; the run itself goes on. */
  close(): void;
  /** The last view, once nothing more will come. Never rejects: see `connection.error`. */
  readonly closed: Promise<RunView>;
}

export type OpenRunOptions = RunStreamOptions &
  Pick<FollowOptions, "repair" | "attemptsMax" | "random"> & {
    /** Another wire than SSE to the same run. */
    readonly source?: Source;
  };

/** Begins with a snapshot unless told otherwise: a view shows the whole, not how it came to be. */
export function openRun(options: OpenRunOptions): OpenRun {
  const listeners = new Set<() => void>();
  const stop = new AbortController();
  let view: RunView = {
    transcript: emptyTranscript(options.run_id),
    connection: { state: "connecting", attempts: 0 },
    missing: 0,
    unknown: 0,
  };

  function show(change: Partial<RunView>): void {
    view = { ...view, ...change };
    for (const listener of [...listeners]) callApart(listener);
  }

  async function read(): Promise<RunView> {
    const onStatus = (connection: Status) => show({ connection });
    try {
      const source = options.source ?? sseSource({ snapshot: true, ...options });
      for await (const items of followInBatches(source, { ...options, signal: stop.signal, onStatus })) {
        show(foldAll(view, items));
      }
      show({ connection: { state: "closed", error: null } });
    } catch (error) {
      show({ connection: { state: "closed", error: stop.signal.aborted ? null : error } });
    }
    return view;
  }

  return {
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    getSnapshot: () => view,
    close: () => stop.abort(new Error("closed")),
    closed: read(),
  };
}

/** Events that came together are folded together: one by one, each would copy all that came before it. */
function foldAll(before: RunView, items: readonly Followed[]): RunView {
  let view = before;
  let events: Event[] = [];
  const settle = () => {
    if (events.length > 0) view = { ...view, transcript: reduceAll(view.transcript, events) };
    events = [];
  };
  for (const item of items) {
    if (item.kind === "event") {
      events.push(item.event);
      continue;
    }
    settle();
    view = fold(view, item);
  }
  settle();
  return view;
}

function fold(view: RunView, item: Exclude<Followed, { readonly kind: "event" }>): RunView {
  switch (item.kind) {
    case "snapshot":
      return { ...view, transcript: item.transcript };
    case "reset":
      return { ...view, transcript: emptyTranscript(item.run_id), missing: 0, unknown: 0 };
    case "gap":
      return { ...view, missing: view.missing + item.to - item.from + 1 };
    case "unknown":
      return { ...view, unknown: view.unknown + 1 };
  }
}

/** A listener's error is its own: it must neither end the reading nor pass unseen. */
function callApart(listener: () => void): void {
  try {
    listener();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
