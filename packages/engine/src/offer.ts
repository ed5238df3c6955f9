// What runs can be given here: models and tools. What somebody asks for is held against it before there is a run.

import { isNamedBy, messageOf, RunwireError } from "@runwire/protocol";
import type { Agent, AgentHost } from "@runwire/server";
import { hasPrice } from "./budget.js";
import type { Model } from "./model.js";
import { isStrategy, strategies } from "./strategies/strategy.js";
import type { Tool } from "./tool.js";
import type { McpServer } from "./tools/mcp.js";
import { type Gathered, gathered, mcpSource } from "./tools/source.js";

/** Of a refusal. */
const toldCharsMax = 100;
const toldToolsMax = 50;

export interface OfferOptions {
  /** The model of a run, by the name that was asked for. */
  readonly modelOf: (name: string | null) => Model;
  /** Models that go on where a run's own is given up on, unless it names others. */
  readonly fallbacks?: readonly string[];
  readonly tools: readonly Tool[];
  /** MCP servers, whose tools are had while they can be reached. */
  readonly mcp?: readonly McpServer[];
}

export interface Offer extends Pick<Agent, "check" | "checkInput" | "close"> {
  /** For runs with a budget: without a price it could not be kept. */
  pricedModelOf(name: string | null): Model;
  everyTool(): Promise<Gathered>;
}

export function offer(
  { modelOf, fallbacks = [], tools: own, mcp = [] }: OfferOptions,
  { clock, report }: AgentHost,
): Offer {
  const ownNames = new Set(own.map(({ name }) => name));
  const unreached = (server: string, error: unknown): void => {
    report("warn", "mcp server not reached", { server, error: messageOf(error) });
  };
  const sources = mcp.map((server) => mcpSource(server, clock, unreached, ownNames));
  // Begun now, so that the first run need not wait for them.
  void gathered(sources);

  async function everyTool(): Promise<Gathered> {
    const { tools, missing } = await gathered(sources);
    return { tools: [...own, ...tools], missing };
  }

  function pricedModelOf(name: string | null): Model {
    const found = modelOf(name);
    if (hasPrice(found)) return found;
    throw new RunwireError("KAI-MODEL-PRICE-0001", `${found.provider}/${found.name}`);
  }

  return {
    pricedModelOf,
    everyTool,
    async check({ agent, model, fallback_models, budget_usd, tools: wanted = [] }) {
      if (agent !== null && !isStrategy(agent)) {
        const named = JSON.stringify(agent.slice(0, toldCharsMax));
        throw new RunwireError("KAI-RUN-AGENT-0001", `${named}; there is ${strategies.join(", ")}`);
      }
      for (const name of [model, ...(fallback_models ?? [])]) modelOf(name);
      if (budget_usd !== undefined)
        for (const name of [model, ...(fallback_models ?? fallbacks)]) pricedModelOf(name);
      if (wanted.length === 0) return;
      const { tools, missing } = await everyTool();
      // A server that is away may have what its name promises.
      const isKnown = (pattern: string): boolean =>
        tools.some(({ name }) => isNamedBy(pattern, name)) ||
        missing.some((source) => pattern.startsWith(`${source}.`));
      const unknown = wanted.find((pattern) => !isKnown(pattern));
      if (unknown === undefined) return;
      const named = JSON.stringify(unknown.slice(0, toldCharsMax));
      const there = tools.map(({ name }) => name).sort();
      const away = missing.length === 0 ? "" : `; not reached: ${[...missing].sort().join(", ")}`;
      throw new RunwireError(
        "KAI-RUN-TOOL-0003",
        `${named}; there is ${there.slice(0, toldToolsMax).join(", ")}${away}`,
      );
    },
    async checkInput(name, input) {
      const tool = (await everyTool()).tools.find((known) => known.name === name);
      try {
        tool?.check?.(input);
      } catch (error) {
        throw new RunwireError("KAI-REQUEST-BODY-0002", `\`input\`: ${(error as Error).message}`);
      }
    },
    async close() {
      await Promise.allSettled(sources.map((source) => source.close()));
    },
  };
}
