import {
  builtInTools,
  chooseModel,
  clarifyTool,
  demoModel,
  demoTools,
  engine,
  type ModelEnv,
  spawnTool,
} from "@runwire/engine";
import type { MakeAgent } from "@runwire/server";
import type { AgentSettings } from "./agent-settings.js";

/** Slow enough to watch, quick enough not to wait for. */
const wordMs = 15;
const searchMs = 400;

/** Which model it speaks to is decided by the keys in the environment; without any it is the demo. */
export function builtInAgent(env: ModelEnv, { shell, fetchHosts, mcp }: AgentSettings): MakeAgent {
  const demo = demoModel({ wordMs });
  const modelOf = (name: string | null) => chooseModel(name, { env, demo });
  const own = builtInTools({ web: { allowedHosts: fetchHosts }, ...(shell === "on" ? { shell: {} } : {}) });
  return engine({
    modelOf,
    tools: [...demoTools({ searchMs }), ...own, spawnTool, clarifyTool],
    mcp,
    // People who see the demo for the first time see what it is up to.
    planningGate: isDemo(env) ? "preview" : "off",
  });
}

function isDemo(env: ModelEnv): boolean {
  return !["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "RUNWIRE_OPENAI_BASE_URL"].some((name) => env[name]);
}
