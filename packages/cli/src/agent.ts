import {
  builtInTools,
  chooseModel,
  clarifyTool,
  demoModel,
  demoTools,
  engine,
  type ModelEnv,
  spawnTool,
  standardModel,
} from "@runwire/engine";
import type { MakeAgent } from "@runwire/server";
import type { AgentSettings } from "./agent-settings.js";

/** Slow enough to watch, quick enough not to wait for. */
const wordMs = 15;
const searchMs = 400;

/**
 * Which model it speaks to is decided by the keys in the environment; without any it is the demo. Throws where the
 * environment names a model that cannot be had.
 */
export function builtInAgent(env: ModelEnv, settings: AgentSettings): MakeAgent {
  const { shell, fetchHosts, mcp, hooks, fallbackModels } = settings;
  const demo = demoModel({ wordMs });
  const modelOf = (name: string | null) => chooseModel(name, { env, demo });
  const standard = standardModel({ env, demo });
  for (const name of fallbackModels) {
    try {
      modelOf(name);
    } catch (error) {
      throw new Error(`fallback model ${(error as Error).message}`, { cause: error });
    }
  }
  const own = builtInTools({ web: { allowedHosts: fetchHosts }, ...(shell === "on" ? { shell: {} } : {}) });
  return engine({
    modelOf,
    fallbacks: fallbackModels,
    tools: [...demoTools({ searchMs }), ...own, spawnTool, clarifyTool],
    mcp,
    hooks,
    // People who see the demo for the first time see what it is up to.
    planningGate: standard === demo ? "preview" : "off",
  });
}
