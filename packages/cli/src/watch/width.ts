// How much room text takes on a terminal: most characters one cell, East Asian and emoji two, marks none.

/** Made when it is first needed: it costs a command that writes plain letters more than all of its text. */
let segmenter: Intl.Segmenter | undefined;
const plain = /^[ -~]*$/;
const wide =
  /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{18aff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u;
const noRoom = /^[\p{Mn}\p{Me}\p{Cf}\u1160-\u11ff]$/u;
const emoji = /^[\p{Extended_Pictographic}\p{Regional_Indicator}]|\u20e3/u;

export interface Cell {
  readonly text: string;
  readonly width: number;
}

/** What a person takes for one character each. */
export function cellsOf(text: string): readonly Cell[] {
  if (plain.test(text)) return Array.from(text, (letter) => ({ text: letter, width: 1 }));
  return Array.from(clustersOf(text), (cluster) => ({ text: cluster, width: cellWidth(cluster) }));
}

/** Longer ones, of marks upon marks, are cut. */
const clusterCharsMax = 256;

/** A segmenter looks at all of its text for each cluster, so it is given little at a time. */
function* clustersOf(text: string): Generator<string> {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  for (let at = 0; at < text.length; ) {
    const piece = text.slice(at, at + clusterCharsMax);
    const clusters = Array.from(segmenter.segment(piece), ({ segment }) => segment);
    // What follows may belong to the last one.
    const isLast = at + piece.length === text.length;
    const whole = isLast || clusters.length === 1 ? clusters : clusters.slice(0, -1);
    yield* whole;
    at += whole.reduce((sum, { length }) => sum + length, 0);
  }
}

export function widthOf(text: string): number {
  if (plain.test(text)) return text.length;
  return cellsOf(text).reduce((sum, { width }) => sum + width, 0);
}

/** Only emoji are joined to one sign by every terminal; of other clusters the parts are counted. */
function cellWidth(segment: string): number {
  if (emoji.test(segment)) return wide.test(segment) ? 2 : 1;
  let width = 0;
  for (const part of segment) width += noRoom.test(part) ? 0 : wide.test(part) ? 2 : 1;
  return width;
}
