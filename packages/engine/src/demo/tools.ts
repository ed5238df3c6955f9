import { systemClock, wait } from "../clock.js";
import type { Tool } from "../tool.js";
import { checkedTool } from "../tools/input.js";
import { factOn } from "./subjects.js";

export interface DemoToolOptions {
  /** How long a search takes, so that people can watch it. */
  readonly searchMs: number;
}

/** A search that needs no network. */
export function demoTools({ searchMs }: DemoToolOptions): readonly Tool[] {
  return [
    checkedTool<{ readonly query: string }>({
      name: "demo.search",
      description: "Looks a subject up in what the demo knows by heart.",
      effect: "read-only",
      input_schema: {
        type: "object",
        required: ["query"],
        additionalProperties: false,
        properties: { query: { type: "string" } },
      },
      async run({ query }, { signal, say }) {
        say(`Searching for ${query} …`);
        // Cut short, it knows its subject all the same.
        await wait(systemClock, searchMs, signal).catch(() => {});
        return { query, text: factOn(query) };
      },
    }),
  ];
}
