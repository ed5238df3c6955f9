// The tools that one run may use. What is not in its box can neither be seen by the model nor be called.

import { isNamedBy } from "@runwire/protocol";
import type { ToolSpec } from "../model.js";
import { type Tool, ToolFailure } from "../tool.js";

export interface ToolboxOptions {
  readonly tools: readonly Tool[];
  /**
   * Lists of names, or of beginnings of names as `file.*`; `*` is all of them. A tool must be in each list: without
   * any all are allowed, an empty one allows none.
   */
  readonly allowed?: readonly (readonly string[])[];
}

export interface Toolbox {
  /** By name, always in the same order. */
  readonly tools: readonly Tool[];
  /** What the model is told. */
  readonly specs: readonly ToolSpec[];
  /** Throws a ToolFailure: `unknown-tool`, or `tool-not-allowed` for one that exists and is not in this box. */
  find(name: string): Tool;
}

export function toolbox({ tools, allowed = [] }: ToolboxOptions): Toolbox {
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  if (byName.size !== tools.length) throw new Error(`two tools are named ${twiceIn(tools)}`);
  const inside = [...byName.values()]
    .filter(({ name }) => allowed.every((list) => list.some((pattern) => isNamedBy(pattern, name))))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    tools: inside,
    specs: inside.map(({ name, description, input_schema }) => ({ name, description, input_schema })),
    find(name) {
      const tool = byName.get(name);
      if (tool === undefined) throw new ToolFailure("unknown-tool", `There is no tool ${name}.`);
      if (!inside.includes(tool)) throw new ToolFailure("tool-not-allowed", `This run may not use ${name}.`);
      return tool;
    },
  };
}

function twiceIn(tools: readonly Tool[]): string {
  return tools.map(({ name }) => name).find((name, i, names) => names.indexOf(name) !== i) ?? "";
}
