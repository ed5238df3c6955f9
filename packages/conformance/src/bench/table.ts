// Tables that are read in a terminal and in Markdown alike.

export function table(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, column) =>
    Math.max(...lines.map((line) => (line[column] ?? "").length)),
  );
  const text = lines.map(
    (line) => `| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`,
  );
  text.splice(1, 0, `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`);
  return text.join("\n");
}

export function round(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

export function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
