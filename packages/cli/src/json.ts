/** Undefined where it is no JSON: it is refused like any other value that was not asked for. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Where in it the mistake is says less than an example of what it takes.
    return undefined;
  }
}
