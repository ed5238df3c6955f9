// People may say much. The demo repeats no more of it than shows that it was heard.

import { beginningOf } from "@runwire/protocol";

const heardCharsMax = 2000;
const quoteCharsMax = 100;

/** What is looked at of anything that somebody said. */
export function heard(text: string): string {
  return beginningOf(text.trim(), heardCharsMax);
}

/** On one line; where it is long, its first words. */
export function quote(text: string, charsMax = quoteCharsMax): string {
  const line = heard(text).replace(/\s+/g, " ");
  if (line.length <= charsMax) return line;
  const kept = beginningOf(line, charsMax - 1);
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
