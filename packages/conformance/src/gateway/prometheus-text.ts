// A strict reader of Prometheus' text format 0.0.4: what Prometheus itself would let pass is refused here.

export interface Sample {
  readonly name: string;
  readonly labels: { readonly [label: string]: string };
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly samples: readonly Sample[];
}

const sampleLine = /^([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\S+)$/;
const label = /([a-z_][a-z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)/y;
const parts = { counter: [""], gauge: [""], histogram: ["_bucket", "_sum", "_count"] };

/** Families by name. Throws with the line that is not as it must be. */
export function parseMetrics(text: string): ReadonlyMap<string, Family> {
  if (!text.endsWith("\n")) throw new Error("the last line does not end");
  const families = new Map<string, Family & { samples: Sample[] }>();
  const seen = new Set<string>();
  let help: { readonly name: string; readonly text: string } | undefined;
  let family: (Family & { samples: Sample[] }) | undefined;
  for (const [i, line] of text.slice(0, -1).split("\n").entries()) {
    const refuse = (why: string): Error => new Error(`line ${i + 1}: ${why}: ${line}`);
    if (line === "") continue;
    const [, said, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (said === "HELP") {
      if (families.has(name)) throw refuse("a family comes twice");
      help = { name, text: rest };
    } else if (said === "TYPE") {
      if (help?.name !== name) throw refuse("no help before it");
      if (rest !== "counter" && rest !== "gauge" && rest !== "histogram") throw refuse("unknown type");
      family = { name, help: help.text, kind: rest, samples: [] };
      families.set(name, family);
    } else {
      const sample = parseSample(line);
      if (sample === undefined) throw refuse("not a sample");
      const of = family;
      if (of === undefined || !parts[of.kind].some((part) => of.name + part === sample.name))
        throw refuse("not of the family above it");
      const series = JSON.stringify([sample.name, Object.entries(sample.labels).sort()]);
      if (seen.has(series)) throw refuse("a series comes twice");
      seen.add(series);
      if (of.kind !== "gauge" && !(sample.value >= 0)) throw refuse("counts are not negative");
      of.samples.push(sample);
    }
  }
  for (const one of families.values()) if (one.kind === "histogram") checkHistogram(one);
  return families;
}

function parseSample(line: string): Sample | undefined {
  const [, name, labelText = "", valueText = ""] = sampleLine.exec(line) ?? [];
  // Prometheus takes it in any case: a mean of nothing, where it was asked for twice in a moment.
  const isNone = /^nan$/i.test(valueText);
  const value = valueText === "+Inf" ? Number.POSITIVE_INFINITY : Number(valueText);
  if (name === undefined || (Number.isNaN(value) && !isNone)) return undefined;
  const labels: { [label: string]: string } = {};
  label.lastIndex = 0;
  for (let at = 0; at < labelText.length; at = label.lastIndex) {
    const [, key, text] = label.exec(labelText) ?? [];
    if (key === undefined || text === undefined || key in labels) return undefined;
    labels[key] = text.replace(/\\(.)/g, (_, letter: string) => (letter === "n" ? "\n" : letter));
  }
  return { name, labels, value };
}

/** Buckets grow, and the last has everything. */
function checkHistogram({ name, samples }: Family): void {
  const series = new Map<string, { readonly le: number; readonly value: number }[]>();
  const counts = new Map<string, number>();
  for (const sample of samples) {
    const { le, ...labels } = sample.labels;
    const of = JSON.stringify(Object.entries(labels).sort());
    if (sample.name.endsWith("_count")) counts.set(of, sample.value);
    if (le === undefined) continue;
    const bound = le === "+Inf" ? Number.POSITIVE_INFINITY : Number(le);
    series.set(of, [...(series.get(of) ?? []), { le: bound, value: sample.value }]);
  }
  for (const [of, buckets] of series) {
    for (const [i, { le, value }] of buckets.entries()) {
      const before = buckets[i - 1];
      if (before !== undefined && (before.le >= le || before.value > value))
        throw new Error(`${name}${of}: buckets do not grow`);
    }
    const last = buckets.at(-1);
    if (last?.le !== Number.POSITIVE_INFINITY || last.value !== counts.get(of))
      throw new Error(`${name}${of}: the last bucket is not everything`);
  }
}

/** The sum of the samples with this name and these labels; 0 where there are none. */
export function total(
  families: ReadonlyMap<string, Family>,
  name: string,
  labels: { readonly [label: string]: string } = {},
): number {
  const family = families.get(name) ?? families.get(name.replace(/_(bucket|sum|count)$/, ""));
  if (family === undefined) throw new Error(`${name} is not exported`);
  return family.samples
    .filter((sample) => sample.name === name)
    .filter((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value))
    .reduce((sum, { value }) => sum + value, 0);
}
