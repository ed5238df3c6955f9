// AbortSignal.any would do, but it is younger than the browsers we serve, and a link that is never cut
// keeps one listener per reconnect on a signal that may live for days.

export interface LinkedAbort {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
  /** Cuts the link; the parent no longer knows this one. */
  unlink(): void;
}

/** A controller that also aborts when `parent` does. */
export function linkedAbort(parent: AbortSignal | undefined): LinkedAbort {
  const controller = new AbortController();
  const pass = () => controller.abort(parent?.reason);
  if (parent?.aborted) pass();
  else parent?.addEventListener("abort", pass, { once: true });
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    unlink: () => parent?.removeEventListener("abort", pass),
  };
}

/** What `work` comes to; rejects with the signal's reason as soon as that aborts, for work that knows no signal. */
export function unlessAborted<T>(work: T | Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal?.reason);
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
    Promise.resolve(work)
      .then(resolve, reject)
      .finally(() => signal?.removeEventListener("abort", stop));
  });
}
