const unitsMs = {
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
  y: 365 * 86_400_000,
} as const;
const longestMs = 100 * unitsMs.y;

/** `90d` in milliseconds; undefined for what is no duration. */
export function parseDuration(text: string): number | undefined {
  const [, count, unit] = /^([1-9][0-9]{0,8})([mhdwy])$/.exec(text) ?? [];
  if (count === undefined || unit === undefined) return undefined;
  const ms = Number(count) * unitsMs[unit as keyof typeof unitsMs];
  return ms <= longestMs ? ms : undefined;
}
