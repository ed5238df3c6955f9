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
export function builtInAgent(env: ModelEnv, { shell, fetchHosts, mcp, hooks }: AgentSettings): MakeAgent {
  const demo = demoModel({ wordMs });
  const modelOf = (name: string | null) => chooseModel(name, { env, demo });
  const standard = standardModel({ env, demo });
  const own = builtInTools({ web: { allowedHosts: fetchHosts }, ...(shell === "on" ? { shell: {} } : {}) });
  return engine({
    modelOf,
    tools: [...demoTools({ searchMs }), ...own, spawnTool, clarifyTool],
    mcp,
    hooks,
    // People who see the demo for the first time see what it is up to.
    planningGate: standard === demo ? "preview" : "off",
  });
}
