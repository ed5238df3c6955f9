// HTML as text, for reading only: it is a scanner that goes through the page once, not a parser. What it gives is never
// used as HTML, so it need not be safe as such; it must be quick on any input and leave out what nobody would read.

/** Everything between these and their end is left out. */
const unread = new Set(["script", "style", "noscript", "template", "svg", "iframe", "object"]);

const breaks = new Set(
  "address article aside blockquote br dd div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section table tr ul".split(
    " ",
  ),
);

export interface Page {
  readonly title: string;
  readonly text: string;
}

export function pageOf(html: string): Page {
  // Searched for ends without regard to case. Only ASCII is folded, so that positions stay those of the page.
  const folded = html.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
  const parts: string[] = [];
  let title = "";
  let pos = 0;
  while (pos < html.length) {
    const open = html.indexOf("<", pos);
    const textEnd = open === -1 ? html.length : open;
    parts.push(html.slice(pos, textEnd));
    if (open === -1) break;
    if (folded.startsWith("<!--", open)) {
      pos = after(folded, "-->", open + 4);
      continue;
    }
    // A `<` that begins no tag is text.
    const name = /^<[/!?]?([a-z][a-z0-9]*)?/.exec(folded.slice(open, open + 32)) ?? [""];
    if (name[0].length < 2) {
      parts.push("<");
      pos = open + 1;
      continue;
    }
    const tag = name[1] ?? "";
    const end = tagEnd(html, open);
    if (folded[open + 1] !== "/" && (unread.has(tag) || tag === "title")) {
      const close = folded.indexOf(`</${tag}`, end);
      const inner = html.slice(end, close === -1 ? html.length : close);
      if (tag === "title" && title === "") title = inner;
      pos = close === -1 ? html.length : tagEnd(html, close);
      continue;
    }
    parts.push(breaks.has(tag) ? "\n" : tag === "td" || tag === "th" ? " " : "");
    pos = end;
  }
  return { title: tidy(title), text: tidy(parts.join("")) };
}

/** The position after the `>` of a tag; one within quotes does not end it. A tag that is never closed is the rest. */
function tagEnd(html: string, open: number): number {
  let quote = "";
  for (let i = open + 1; i < html.length; i++) {
    const char = html[i] ?? "";
    if (quote !== "") {
      if (char === quote) quote = "";
    } else if ((char === '"' || char === "'") && html[i - 1] === "=") quote = char;
    else if (char === ">") return i + 1;
  }
  return html.length;
}

function after(text: string, end: string, from: number): number {
  const found = text.indexOf(end, from);
  return found === -1 ? text.length : found + end.length;
}

/** References read, spaces put together, no more than one empty line between two others. */
function tidy(text: string): string {
  return withReferences(text)
    .split("\n")
    .map((line) =>
      line
        .split(/[\s\u00a0]+/)
        .filter((word) => word !== "")
        .join(" "),
    )
    .join("\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
}

const references: { readonly [name: string]: string } = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
  ndash: "–",
  mdash: "—",
  hellip: "…",
  lsquo: "‘",
  rsquo: "’",
  ldquo: "“",
  rdquo: "”",
  bull: "•",
  copy: "©",
  euro: "€",
  times: "×",
};

function withReferences(text: string): string {
  return text.replace(
    /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-z]{2,6}));/g,
    (whole, decimal, hex, name) => {
      if (name !== undefined) return Object.hasOwn(references, name) ? (references[name] ?? whole) : whole;
      const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
      const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
      return isCharacter ? String.fromCodePoint(code) : "\ufffd";
    },
  );
}
