/** What the work gives, or the signal's reason as soon as it aborts. For work that cannot be stopped, but need not be waited for. */
export function until<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** The same, but the work may take this long to stop by itself, and to leave nothing behind. */
export async function soonAfter<T>(signal: AbortSignal, graceMs: number, work: Promise<T>): Promise<T> {
  const late = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const stop = (): void => {
    timer = setTimeout(() => late.abort(signal.reason), graceMs);
  };
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await until(late.signal, work);
  } finally {
    signal.removeEventListener("abort", stop);
    clearTimeout(timer);
  }
}
