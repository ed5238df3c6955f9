// The run's log as its writer sees it: what is in it is folded as it is committed, and what is written is waited for.

import type { Draft } from "@runwire/protocol";
import type { AgentHost, RunKey } from "@runwire/server";
import { wholeEvent } from "./whole.js";
import { advance, firstWork, isOver, type Work } from "./work.js";

export interface RunLog {
  readonly work: Work;
  /** Commits, and resolves when the fold has seen it. */
  write(...drafts: readonly Draft[]): Promise<void>;
  /** Resolves once this holds, or the run is over. */
  until(holds: (work: Work) => boolean): Promise<Work>;
  /** Resolves when the fold has seen all that is in the log now. */
  catchUp(): Promise<void>;
}

export async function openLog(
  host: AgentHost,
  run: RunKey,
  signal: AbortSignal,
  onChange: (work: Work) => void,
): Promise<RunLog> {
  const { writer, head, follow } = host;
  let work = firstWork;
  let waiting: (() => void)[] = [];
  let broken: unknown;
  const ring = (): void => {
    const woken = waiting;
    waiting = [];
    for (const wake of woken) wake();
  };
  /** Resolves at the next event, whoever writes it. */
  const changed = (): Promise<void> => new Promise((resolve) => waiting.push(resolve));

  async function read(): Promise<void> {
    for await (const events of follow(run, "full", 0, signal)) {
      for (const event of events) work = advance(work, await wholeEvent(host, run.tenant, event));
      onChange(work);
      ring();
    }
  }
  read()
    .catch((error: unknown) => {
      broken = error;
    })
    .finally(ring);

  async function until(holds: (work: Work) => boolean): Promise<Work> {
    while (!holds(work) && !isOver(work)) {
      if (broken !== undefined) throw broken;
      signal.throwIfAborted();
      await changed();
    }
    return work;
  }

  async function catchUp(): Promise<void> {
    const last = (await head(run))?.views.full.pos ?? 0;
    await until(({ pos }) => pos >= last);
  }

  // What is there now is folded before anything is decided.
  await catchUp();

  return {
    get work() {
      return work;
    },
    async write(...drafts) {
      signal.throwIfAborted();
      const { last_pos } = await writer.append(run, drafts);
      await until(({ pos }) => pos >= last_pos);
    },
    until,
    catchUp,
  };
}
