// How far long work has got, on a terminal only, and only once it is long.

import { existsSync, statSync } from "node:fs";

export interface Progress {
  at(bytes: number): void;
  /** Takes the line away, before another is written or at the end. */
  clear(): void;
}

const quietMs = 1000;
const drawMs = 200;
const eraseLine = "\r\u001b[K";

export function progress(
  file: string | undefined,
  to: NodeJS.WriteStream = process.stderr,
  nowMs: () => number = Date.now,
): Progress {
  if (!to.isTTY || process.env.TERM === "dumb") return { at() {}, clear() {} };
  const whole = file !== undefined && existsSync(file) ? statSync(file).size : 0;
  const beganMs = nowMs();
  let drawnMs = beganMs + quietMs - drawMs;
  let drawn = false;
  return {
    at(bytes) {
      const now = nowMs();
      if (now - drawnMs < drawMs) return;
      drawnMs = now;
      drawn = true;
      const rate = Math.round(bytes / 1000 / Math.max(1, now - beganMs));
      const share = whole === 0 ? "" : ` of ${megabytes(whole)}, ${Math.floor((100 * bytes) / whole)} %`;
      to.write(`${eraseLine}${megabytes(bytes)}${share}, ${rate} MB/s`);
    },
    clear() {
      if (drawn) to.write(eraseLine);
      drawn = false;
    },
  };
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1_000_000).toLocaleString("en")} MB`;
}
