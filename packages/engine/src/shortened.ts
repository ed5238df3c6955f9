/** The beginning of a text, with an ellipsis where it is cut. Counted in characters, of which some take two places of a string. */
export function shortened(text: string, charsMax: number): string {
  const chars = [...text.slice(0, 2 * charsMax + 1)];
  if (chars.length <= charsMax) return text;
  return `${chars
    .slice(0, charsMax - 1)
    .join("")
    .trimEnd()}…`;
}
