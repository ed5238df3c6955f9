// What the operator hears: one JSON object a line on stderr, without payloads or secrets.

export const logLevels = ["error", "warn", "info", "debug"] as const;
export type LogLevel = (typeof logLevels)[number];

export type Report = (level: LogLevel, what: string, facts?: { readonly [fact: string]: unknown }) => void;

export function reportTo(write: (line: string) => void, most: LogLevel, now: () => number): Report {
  const silentFrom = logLevels.indexOf(most) + 1;
  return (level, what, facts) => {
    if (logLevels.indexOf(level) >= silentFrom) return;
    write(`${JSON.stringify({ ts: new Date(now()).toISOString(), level, what, ...facts })}\n`);
  };
}
