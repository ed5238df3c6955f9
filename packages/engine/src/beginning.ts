// The beginning of a text, with no character cut in two.

/** Where it is cut, nothing shows that. */
export function beginningOf(text: string, unitsMax: number): string {
  return text.slice(0, unitsMax).replace(/[\uD800-\uDBFF]$/, "");
}

/** With an ellipsis where it is cut. Counted in characters, of which some take two places of a string. */
export function shortened(text: string, charsMax: number): string {
  const chars = [...text.slice(0, 2 * charsMax + 1)];
  if (chars.length <= charsMax) return text;
  return `${chars
    .slice(0, charsMax - 1)
    .join("")
    .trimEnd()}…`;
}
