// People may say much. The demo repeats no more of it than shows that it was heard.

/** What is looked at of anything that somebody said. */
const heardCharsMax = 2000;
const quoteCharsMax = 100;

/** The beginning of what somebody said. */
export function beginningOf(text: string): string {
  return cut(text.trim(), heardCharsMax);
}

/** On one line; where it is long, its first words. */
export function quote(text: string, charsMax = quoteCharsMax): string {
  const line = beginningOf(text).replace(/\s+/g, " ");
  if (line.length <= charsMax) return line;
  const kept = cut(line, charsMax - 1);
  const space = kept.lastIndexOf(" ");
  // A word that is as long as all of it has to be cut in two.
  const words = space > charsMax / 2 ? kept.slice(0, space) : kept;
  return `${words.replace(/[\s.,;:]+$/, "")}…`;
}

/** With the full stop that people leave out. */
export function sentence(text: string): string {
  const said = quote(text);
  return /[.?!…]$/.test(said) ? said : `${said}.`;
}

export function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Never inside of a character that takes two. */
function cut(text: string, charsMax: number): string {
  return text.slice(0, charsMax).replace(/[\uD800-\uDBFF]$/, "");
}
