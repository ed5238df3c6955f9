// What the demo makes of a question: three things to look into, and what is to be found about each.

const topics: readonly { readonly about: RegExp; readonly subjects: readonly string[] }[] = [
  { about: /chart|plot|graph/i, subjects: ["uPlot", "ECharts", "Observable Plot"] },
  { about: /database|store|sql/i, subjects: ["SQLite", "PostgreSQL", "DuckDB"] },
  { about: /framework|front.?end|\bui\b/i, subjects: ["React", "Svelte", "Lit"] },
];

const facts: { readonly [subject: string]: string } = {
  uPlot: "very small and very fast for time series; few chart types, little interaction.",
  ECharts: "many chart types and good defaults; the largest download of the three.",
  "Observable Plot": "concise marks and scales for exploring data; not made for live updates.",
  SQLite: "one file, no server, one writer at a time; hard to beat on a single machine.",
  PostgreSQL: "many writers, rich types and extensions; a server that someone must run.",
  DuckDB: "columns and fast analysis inside a process; not for many small writes.",
  React: "the largest ecosystem and the most people who know it; a runtime comes with it.",
  Svelte: "compiles itself away and reads like plain markup; a smaller ecosystem.",
  Lit: "thin layer over web components that any page can use; you bring the rest.",
};

/** Three, by what the question names, or by what it is about; else by what was asked before it, the last first. */
export function subjectsOf(question: string, before: readonly string[] = []): readonly string[] {
  const asked = [question, ...before.toReversed()];
  const found = asked.map(namedIn).find((subjects) => subjects.length > 0);
  return found ?? ["what it is for", "what it costs", "what people say"];
}

function namedIn(question: string): readonly string[] {
  const named = /\b(?:compare|between|of)\s+(.+?,.+?)(?:[.?!]|$)/i.exec(question)?.[1];
  const list = named?.split(/,\s*(?:and\s+)?|\s+and\s+/).map((item) => item.trim()) ?? [];
  if (list.length >= 2) return list.filter((item) => item !== "").slice(0, 3);
  const topic = topics.find(({ about }) => about.test(question));
  return topic?.subjects ?? [];
}

export function factOn(subject: string): string {
  return facts[subject] ?? "nothing is written about it here; the demo knows only a few subjects by heart.";
}
