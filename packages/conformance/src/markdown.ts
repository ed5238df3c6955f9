// The little of Markdown that the documents' tests need: fenced blocks, links and headings.

export interface Fence {
  /** The word after the opening fence: `ts`, `json`, `sh` … */
  readonly language: string;
  readonly text: string;
  /** The line of the document on which the text begins, counted from 1. */
  readonly line: number;
}

export function fencesOf(markdown: string): readonly Fence[] {
  const fences: Fence[] = [];
  const lines = markdown.split("\n");
  for (let i = 0; i < lines.length; i++) {
    const opening = /^( *)(`{3,})([^`\s]*)[^`]*$/.exec(lines[i] ?? "");
    if (opening === null) continue;
    const [, indent = "", ticks = "", language = ""] = opening;
    const first = i + 1;
    i = lines.findIndex((line, at) => at >= first && line.trim() === ticks);
    if (i === -1) throw new Error(`line ${first}: a fence that never closes`);
    const text = lines
      .slice(first, i)
      .map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line));
    fences.push({ language, text: text.join("\n"), line: first + 1 });
  }
  return fences;
}

/** Where links and images lead, outside code. */
export function linksOf(markdown: string): readonly string[] {
  const prose = withoutCode(markdown);
  return [
    ...[...prose.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g)].map(([, target]) => target ?? ""),
    ...[...prose.matchAll(/^\[[^\]]+\]:\s*<?([^\s>]+)>?/gm)].map(([, target]) => target ?? ""),
    ...[...prose.matchAll(/\b(?:href|src)="([^"]+)"/g)].map(([, target]) => target ?? ""),
  ];
}

/** The fragments that headings can be linked by, as GitHub makes them. */
export function anchorsOf(markdown: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading = ""] of withoutFences(markdown).matchAll(/^#{1,6} +(.+?) *#*$/gm)) {
    const plain = heading.replace(/`|\*|\[([^\]]*)\]\([^)]*\)/g, "$1");
    const slug = plain
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replace(/\s/g, "-");
    let anchor = slug;
    for (let n = 1; anchors.has(anchor); n++) anchor = `${slug}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}

function withoutFences(markdown: string): string {
  return markdown.replace(/^( *)(`{3,})[\s\S]*?^\1\2 *$/gm, "");
}

function withoutCode(markdown: string): string {
  return withoutFences(markdown).replace(/(`+)[\s\S]*?\1/g, "");
}
