import { clarifyTool, demoModel, demoTools, engine, spawnTool } from "@runwire/engine";
import type { MakeAgent } from "@runwire/server";

/** Slow enough to watch, quick enough not to wait for. */
const wordMs = 15;
const searchMs = 400;

export function builtInAgent(): MakeAgent {
  const demo = demoModel({ wordMs });
  return engine({ modelOf: () => demo, tools: [...demoTools({ searchMs }), spawnTool, clarifyTool] });
}
