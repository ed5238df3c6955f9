// How a watcher leaves: with Ctrl-C, or because somebody ends the command. What it watched goes on.

export interface Leaving {
  readonly signal: AbortSignal;
  /** The same as Ctrl-C, where keys are read. */
  readonly interrupt: () => void;
}

/** Sets the exit code by how it was left. */
export function leaving(): Leaving {
  const left = new AbortController();
  const leave = (code: number): void => {
    process.exitCode = code;
    left.abort();
  };
  const interrupt = (): void => leave(130);
  process.once("SIGINT", interrupt);
  process.once("SIGTERM", () => leave(143));
  return { signal: left.signal, interrupt };
}

export const exitCodes = { done: 0, error: 1, aborted: 2 } as const;
