/** The beginning of a text, by characters, so that none is cut in two. */
export function beginningOf(text: string, charsMax: number): string {
  // A character takes two places at most.
  const chars = [...text.slice(0, 2 * charsMax + 1)];
  if (chars.length <= charsMax) return text;
  return `${chars
    .slice(0, charsMax - 1)
    .join("")
    .trimEnd()}…`;
}
