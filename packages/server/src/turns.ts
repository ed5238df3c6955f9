// Who comes in a crowd is let in one by one, each in a turn of the loop of its own: a thousand readers that come back at
// once, each for a long log, keep nobody else waiting.

/** Resolves when it is one's turn. */
export function turns(): () => Promise<void> {
  let going: readonly (() => void)[] = [];
  let coming: (() => void)[] = [];
  let next = 0;
  let isOpen = false;

  function letIn(): void {
    if (next === going.length) [going, coming, next] = [coming, [], 0];
    going[next++]?.();
    isOpen = next < going.length || coming.length > 0;
    if (isOpen) setImmediate(letIn);
    else [going, next] = [[], 0];
  }

  return () =>
    new Promise((resolve) => {
      coming.push(resolve);
      if (isOpen) return;
      isOpen = true;
      setImmediate(letIn);
    });
}
