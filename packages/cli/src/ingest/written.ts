// A run that is being written from a pipe. It is followed at the same time: whoever aborts, pauses or answers is heard.

import { type Endpoint, follow, gateway, openProducer, sseSource, systemClock, wait } from "@runwire/client";
import {
  type Dialect,
  type Draft,
  type Event,
  endsRun,
  type Facts,
  type FinalState,
  idSource,
  is,
  isFinal,
  parseDraft,
  RunwireError,
} from "@runwire/protocol";
import { type Begun, fitting, requestKey } from "./fitting.js";

export interface Written {
  /** Resolves when there is room for more. Throws a RunwireError where the event could not be stored. */
  take(e: Event): Promise<void>;
  /** Ends it, where neither the wire nor anybody else has: as its turn ended, or else as an error. */
  cutOff(reason: string): void;
  /** Whether its end is still to come, from the wire or from anybody else. */
  readonly isOpen: boolean;
  /** How it ended, and whether the wire had said so. */
  readonly end: Promise<{ readonly state: FinalState; readonly isOurs: boolean }>;
}

export interface WrittenOptions {
  readonly dialect: Dialect;
  readonly begun: Begun;
  /** Takes the lines that tell the producer what people answered. */
  readonly answers: ((lines: string) => void) | undefined;
  /** Told why nothing more can be stored. */
  readonly onFailure: (error: unknown) => void;
  /** Told once of a child why something of it is left out. */
  readonly onLeftOut: (child_id: string, error: RunwireError) => void;
}

/** Before the end of a run is tried again. */
const againMs = 200;

export function writeRun(endpoint: Endpoint, run_id: string, options: WrittenOptions): Written {
  const ids = idSource(Math.random);
  const { begun } = options;
  const fit = fitting(begun, () => ids.next("run", Date.now()));
  const over = new AbortController();
  const producer = openProducer({
    ...endpoint,
    run_id,
    signal: over.signal,
    mayGiveUp: isOfChild,
    onGivenUp,
  });
  /** Ends of children that somebody has paused or redirected; each is tried until it is stored. */
  const held = new Set<Draft>();
  /** Children of which something was left out. */
  const lessened = new Set<string>();
  /** Requests that the wire itself answers. */
  const answered = new Set<string>();
  const gate = openGate();
  let isOpen = true;
  let hasFailed = false;

  async function push(draft: Draft): Promise<void> {
    const id = resolvedBy(draft);
    if (id !== undefined) answered.add(requestKey(draft.child_id, id));
    try {
      await producer.push(draft);
    } catch (error) {
      // Why nothing more can be stored is heard through the signal.
      if (!producer.signal.aborted) throw error;
    }
  }

  /**
   * The last draft goes by itself, because a run that somebody has just paused or redirected cannot end before it goes
   * on, and what was said before must be stored all the same.
   */
  async function endWith(draft: Draft): Promise<void> {
    isOpen = false;
    await producer.flush();
    await gate.passed();
    // Those that may end by now do so as the wire has said; the others end with the run.
    for (const one of held) await mayEnd(one);
    await insist(draft);
  }

  async function insist(draft: Draft): Promise<void> {
    for (;;) {
      await gate.passed();
      if (await mayEnd(draft)) return;
      await wait(systemClock, againMs, over.signal);
    }
  }

  /** Whether that end is stored, or another. */
  async function mayEnd(draft: Draft): Promise<boolean> {
    try {
      await gateway(endpoint).append(run_id, [draft]);
      return true;
    } catch (error) {
      if (!(error instanceof RunwireError)) throw error;
      // Stored already, by a request whose answer was lost; or somebody was faster.
      if (error.code === "KAI-RUN-ENDED-0001" || error.code === "KAI-RUN-CHILD-0001") return true;
      if (error.code !== "KAI-RUN-STATE-0001" && !error.row.retry) throw error;
      return false;
    }
  }

  /** What people do to a child takes nothing from the others. */
  function onGivenUp(draft: Draft, error: RunwireError): void {
    if (isLast(draft) && error.code === "KAI-RUN-STATE-0001") {
      held.add(draft);
      insist(draft)
        .catch(failed)
        .finally(() => held.delete(draft));
      return;
    }
    const child_id = is(draft, "child.spawn") ? draft.payload.child_id : draft.child_id;
    if (child_id == null) return;
    if (error.code.startsWith("KAI-RUN-CHILD-")) fit.lose(child_id);
    if (!lessened.has(child_id)) options.onLeftOut(child_id, error);
    lessened.add(child_id);
  }

  /** Of what could not be stored, at least the run's end is tried. */
  async function endAfter(error: unknown): Promise<void> {
    const why = error instanceof RunwireError ? error.code : "it failed";
    const payload = { state: "error" as const, reason: `the server refused what it was sent: ${why}` };
    await gateway(endpoint).append(run_id, [{ type: "run.lifecycle", payload }]);
  }

  function failed(error: unknown): void {
    // The run's end, whoever caused it, comes with its events.
    const isEnd = error instanceof RunwireError && error.code === "KAI-RUN-ENDED-0001";
    if (over.signal.aborted || hasFailed || isEnd) return;
    hasFailed = true;
    isOpen = false;
    options.onFailure(error);
    endAfter(error).catch((reason) => over.abort(reason));
  }

  /** Nobody tells any more when a paused run goes on: whoever waits for that is let go, and nothing more is stored. */
  async function lost(error: unknown): Promise<never> {
    gate.open();
    const isTold = hasFailed;
    hasFailed = true;
    isOpen = false;
    // What ends the following is refused to the writer, too, as a rule; then the lease ends the run.
    if (!isTold) await endAfter(error).catch(() => {});
    over.abort(error);
    throw error;
  }

  producer.signal.addEventListener("abort", () => failed(producer.signal.reason));
  if (begun.state === "paused") gate.shut();
  if (begun.state === "redirecting") goOn();

  async function followToEnd(): Promise<{ readonly state: FinalState; readonly isOurs: boolean }> {
    let state = options.dialect.first;
    const source = sseSource({ ...endpoint, run_id, dialect: "runwire", backpressure: "lossless" });
    for await (const item of follow(source, { signal: over.signal })) {
      if (item.kind === "reset") state = options.dialect.first;
      if (item.kind !== "event") continue;
      const { event } = item;
      const [next, messages] = options.dialect.step(state, event);
      state = next;
      // What was said before was said to others.
      const isNews = event.pos > begun.pos;
      if (isNews && isAnswer(event, answered))
        options.answers?.(messages.map(({ data }) => `${data}\n`).join(""));
      if (endsRun(event)) {
        const isOurs = !isOpen;
        isOpen = false;
        gate.open();
        // Nothing more can be stored, and no lease is there to renew.
        over.abort();
        return { state: event.payload.state, isOurs };
      }
      if (!isNews) continue;
      if (event.child_id === null) hear(event);
      else hearOfChild(event.child_id, event);
    }
    return { state: "error", isOurs: false };
  }

  function hear(e: Event): void {
    if (is(e, "control.requested") && e.payload.action === "pause") gate.shut();
    if (!is(e, "run.lifecycle")) return;
    if (e.payload.state !== "paused") gate.open();
    if (e.payload.state === "redirecting") goOn();
  }

  function hearOfChild(child_id: string, e: Event): void {
    if (!is(e, "run.lifecycle")) return;
    if (isFinal(e.payload.state)) fit.lose(child_id);
    if (e.payload.state === "redirecting") goOn(child_id);
  }

  /** Nobody can turn what is behind a pipe, and a run that waits to be turned could not end. */
  function goOn(child_id: string | null = null): void {
    const payload = { state: "running", reason: "it takes no directions" } as const;
    void push({ type: "run.lifecycle", payload, child_id });
  }

  async function store(drafts: readonly Draft[]): Promise<void> {
    for (const draft of fit.ended ? drafts.slice(0, -1) : drafts) await push(draft);
    const last = fit.ended ? drafts.at(-1) : undefined;
    if (last !== undefined) endWith(last).catch(failed);
  }

  return {
    get isOpen() {
      return isOpen;
    },
    end: followToEnd().catch(lost),
    async take(e) {
      // What the server would refuse is refused here: there, all that it is sent with is refused too.
      parseDraft(e);
      // Pausing is not reading on: the pipe fills, and its writer waits.
      await gate.passed();
      const drafts = fit.draftsOf(e);
      if (!producer.signal.aborted) await store(drafts);
    },
    cutOff(reason) {
      if (!isOpen || producer.signal.aborted) return;
      isOpen = false;
      const payload = fit.turn ?? { state: "error" as const, reason };
      store(fit.end(payload)).catch(failed);
    },
  };
}

/** Refusals that a run's other events need not share. */
function isOfChild(draft: Draft, { code }: RunwireError): boolean {
  return (
    /^KAI-RUN-(?:CHILD|STATE|REQUEST)-/.test(code) && (draft.child_id != null || is(draft, "child.spawn"))
  );
}

function isLast(draft: Draft): boolean {
  return is(draft, "run.lifecycle") && isFinal(draft.payload.state);
}

/** What a person said, or that nobody did in time. */
function isAnswer(e: Event, answered: ReadonlySet<string>): boolean {
  const id = resolvedBy(e);
  const { outcome } = e.payload as Facts;
  return id !== undefined && outcome !== "closed" && !answered.has(requestKey(e.child_id, id));
}

function resolvedBy(e: Draft): string | undefined {
  if (is(e, "approval.resolved")) return e.payload.approval_id;
  return is(e, "clarify.resolved") ? e.payload.clarify_id : undefined;
}

function openGate(): { shut(): void; open(): void; passed(): Promise<void> } {
  let waiting = Promise.resolve();
  let open = (): void => {};
  return {
    shut() {
      open();
      waiting = new Promise((resolve) => {
        open = resolve;
      });
    },
    open: () => open(),
    passed: () => waiting,
  };
}
