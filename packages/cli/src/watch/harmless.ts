// Text of models, tools and people, made fit for a terminal: nothing in it may move the cursor, change colours or the
// window, or show letters in another order than they are in.

// CSI, then strings up to their end (titles, links, the clipboard), then two-character sequences. A string has no
// other string's beginning in it, so that each character is looked at once.
const sequences =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b[\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\r\n\u0007\u001b\u0090\u0098\u009c-\u009f]{0,4096}(?:\u0007|\u001b\\|\u009c)|\u001b[ -/]*[0-~]/g;
const lineBreaks = /\r\n?|[\u0085\u2028\u2029]/g;
const bidi = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
// Joiners are part of many scripts and emoji, and tags of some flags; what is left of the class are controls and halves
// of characters.
const controls =
  /\u{1f3f4}[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}]{1,6}\u{e007f}|(?![\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Keeps line breaks as `\n`; tabs become spaces. */
export function harmless(text: string): string {
  return text
    .replace(sequences, "")
    .replace(lineBreaks, "\n")
    .replaceAll("\t", "    ")
    .replace(bidi, "")
    .replace(controls, (found) => (found.startsWith("\u{1f3f4}") ? found : "�"));
}

// What the next characters may turn into a sequence, a line break or a character.
const unfinished =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  /(?:(?:\u001b\[|\u009b)[0-?]*[ -/]*|(?:\u001b[\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\r\n\u0007\u001b\u0090\u0098\u009c-\u009f]{0,4096}\u001b?|\u001b[ -/]*|\r|[\ud800-\udbff])$/;

/** Text that is still growing: what is safe already, and the end of it that nobody can judge yet. */
export function growing(text: string): { readonly safe: string; readonly open: string } {
  const at = unfinished.exec(text)?.index ?? text.length;
  return { safe: harmless(text.slice(0, at)), open: text.slice(at) };
}

/** The same on one line. */
export function oneLine(text: string): string {
  return harmless(text).replace(/\s+/g, " ").trim();
}
