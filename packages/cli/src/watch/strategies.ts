// Trees and graphs of thoughts as lines: what was thought of and what it is worth, which parts a task has, and what has
// become of each.

import { type AnyEvent, type Facts, isObject } from "@runwire/protocol";
import { oneLine } from "./harmless.js";
import type { Line, Span } from "./line.js";
import { cutLine } from "./lines.js";

/** The lines of such an event; null where it is none. `candidates` are those of the level that is being scored. */
export function strategyLines(
  label: string,
  e: AnyEvent,
  candidates: readonly string[],
): readonly Line[] | null {
  const { payload } = e as { readonly payload: Facts };
  switch (e.type) {
    case "tot.expand": {
      const at = typeof payload.depth === "number" ? ` at depth ${payload.depth}` : "";
      return [
        cutLine(label, { text: `Thoughts${at}`, style: "bold" }),
        ...candidatesIn(payload).map((text, i) =>
          wrapped(label, 5, { text: `  ${i + 1}. ${oneLine(text)}` }),
        ),
      ];
    }
    case "tot.evaluate": {
      const scores = Array.isArray(payload.scores) ? payload.scores : [];
      const chosen = typeof payload.chosen === "number" ? payload.chosen : 0;
      const told = scores.map((score, i) => `${i + 1}: ${words(score)}`).join(" · ");
      return [
        wrapped(
          label,
          2,
          { text: `✓ ${chosen + 1}`, style: "green" },
          { text: told === "" ? "" : `  (${told})`, style: "dim" },
          { text: `  ${oneLine(candidates[chosen] ?? "")}` },
        ),
      ];
    }
    case "tot.backtrack": {
      const to = typeof payload.thought === "string" ? `: ${oneLine(payload.thought)}` : "";
      return [
        wrapped(
          label,
          2,
          { text: `↩ back to depth ${words(payload.to_depth)}`, style: "yellow" },
          { text: to },
          { text: `  (${words(payload.reason)})`, style: "dim" },
        ),
      ];
    }
    case "got.plan": {
      const ids = Array.isArray(payload.node_ids) ? payload.node_ids : [];
      const parts = partsIn(payload);
      return [
        cutLine(
          label,
          { text: "Graph", style: "bold" },
          {
            text: `  ${ids.length} ${ids.length === 1 ? "part" : "parts"}`,
            style: "dim",
          },
        ),
        ...(parts.length > 0 ? parts : ids.map((id) => ({ id }))).map((part) => partLine(label, "☐", part)),
      ];
    }
    case "got.expand": {
      const from = words(payload.node_id);
      const count = words(payload.nodes_added);
      return [
        cutLine(label, { text: `+ ${count} more from ${from}`, style: "cyan" }),
        ...partsIn(payload).map((part) => partLine(label, "☐", part)),
      ];
    }
    case "got.node_start":
      return [cutLine(label, { text: "· ", style: "dim" }, nameOf(payload))];
    case "got.node_complete":
      return [
        cutLine(label, { text: "✓ ", style: "green" }, nameOf(payload), {
          text: `  → ${words(payload.result_summary)}`,
          style: "dim",
        }),
      ];
    case "got.node_failed":
      return [
        cutLine(label, { text: "✗ ", style: "red" }, nameOf(payload), {
          text: `  → ${words(payload.error)}`,
          style: "red",
        }),
      ];
    default:
      return null;
  }
}

/** What there is to choose from, for the scores that come after it. */
export function candidatesIn({ candidates }: Facts): readonly string[] {
  return Array.isArray(candidates) ? candidates.filter((one) => typeof one === "string") : [];
}

function partsIn({ nodes }: Facts): readonly Facts[] {
  return Array.isArray(nodes) ? nodes.filter(isObject) : [];
}

function partLine(label: string, mark: string, { id, task, deps }: Facts): Line {
  const what = typeof task === "string" ? `  ${oneLine(task)}` : "";
  const needed = Array.isArray(deps) ? deps.map(words).join(", ") : "";
  const after = needed === "" ? "" : `  after ${needed}`;
  return wrapped(label, 4, { text: `  ${mark} ${words(id)}` }, { text: what }, { text: after, style: "dim" });
}

function nameOf({ id }: Facts): Span {
  return { text: words(id), style: "bold" };
}

/** Producers may say anything: what is neither a text nor a number says nothing here. */
function words(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? oneLine(String(value)) : "";
}

function wrapped(label: string, hang: number, ...spans: readonly Span[]): Line {
  return { ...cutLine(label, ...spans), fit: "wrap", hang };
}
