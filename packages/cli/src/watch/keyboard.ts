// Keys as they are pressed. Raw for as long as the run is watched, so that nothing typed before a prompt is there
// lands in it, and nothing is echoed into what is drawn.

import type { ReadStream } from "node:tty";
import { whenSuspended } from "./suspend.js";

export interface KeyListener {
  /** All that came at once: one key, or what was pasted. */
  onKeys(keys: string): void;
  onInterrupt(): void;
  /** The terminal goes to somebody else until the process is continued. */
  onSuspend(): void;
}

/** Returns how to stop. */
export function listenToKeys(input: ReadStream, { onKeys, onInterrupt, onSuspend }: KeyListener): () => void {
  const take = (text: string): void => {
    // Arrows and other keys that mean nothing here come as sequences.
    if (text.length > 1 && text.startsWith("\u001b")) return;
    let keys = "";
    for (const key of text) {
      if (key === "\u0003") onInterrupt();
      else if (key === "\u001a") process.kill(process.pid, "SIGTSTP");
      else keys += key;
    }
    if (keys !== "") onKeys(keys);
  };
  const stopSuspending = whenSuspended({
    give() {
      onSuspend();
      input.setRawMode(false);
    },
    take: () => void input.setRawMode(true),
  });
  input.setRawMode(true);
  input.setEncoding("utf8");
  input.on("data", take);
  return () => {
    stopSuspending();
    input.off("data", take);
    input.setRawMode(false);
    input.pause();
  };
}
