import type { AllSettings } from "../setting-rows.js";

/** One thing that a check found, and what to do about it. */
export interface Finding {
  readonly result: "right" | "doubtful" | "wrong";
  /** What it is about, in a word. */
  readonly about: string;
  readonly says: string;
  readonly todo?: string;
}

/** What a server with these settings would meet, now. */
export interface Facts {
  readonly settings: AllSettings;
  /** Where the keys of models are. */
  readonly env: { readonly [name: string]: string | undefined };
  readonly nowMs: number;
}

/** Checks only look: none changes anything. */
export type Check = (facts: Facts) => readonly Finding[] | Promise<readonly Finding[]>;

export function right(about: string, says: string): Finding {
  return { result: "right", about, says };
}

export function doubtful(about: string, says: string, todo: string): Finding {
  return { result: "doubtful", about, says, todo };
}

export function wrong(about: string, says: string, todo: string): Finding {
  return { result: "wrong", about, says, todo };
}

const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];

export function inWords(bytes: number): string {
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const value = bytes / 1024 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[power]}`;
}

const dayMs = 86_400_000;

export function daysUntil(endMs: number, nowMs: number): string {
  const days = Math.floor((endMs - nowMs) / dayMs);
  return days === 1 ? "1 day" : days === 0 ? "less than a day" : `${days} days`;
}
