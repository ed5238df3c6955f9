// What governed a call, where it is worth a line: somebody said no, something was out of bounds, files have changed.

import type { Event, Facts } from "@runwire/protocol";
import { oneLine } from "./harmless.js";
import type { Line } from "./line.js";
import { cutLine } from "./lines.js";

export function governanceLines(label: string, { type, payload }: Event): readonly Line[] {
  const text = textOf(type, payload as Facts);
  return text === "" ? [] : [cutLine(label, { text: oneLine(text), style: "dim" })];
}

function textOf(type: string, facts: Facts): string {
  const { name, toolName, outcome, reason, message, violation } = facts;
  switch (type) {
    case "hook.completed":
      // What the engine's own check has to say is said by the call's end.
      if (outcome !== "refused" || name === "input-check") return "";
      return `⊘ the hook ${name} refused ${toolName}: ${reason}`;
    case "hook.failed":
      return `! the hook ${name} failed at ${toolName}: ${message ?? reason}`;
    case "sandbox.violation":
      return `⊘ ${toolName} was kept in its sandbox: ${violation}`;
    case "artifact.changed":
      return changeText(facts);
    default:
      return "";
  }
}

const signs: { readonly [change: string]: string } = { created: "+", modified: "~", deleted: "-" };

function changeText({ change, path, bytes, more }: Facts): string {
  if (typeof more === "number") return `± and ${more} more files have changed`;
  if (typeof path !== "string") return "";
  const size = typeof bytes === "number" ? ` (${bytes.toLocaleString("en")} bytes)` : "";
  return `${signs[String(change)] ?? "±"} ${path}${size}`;
}
