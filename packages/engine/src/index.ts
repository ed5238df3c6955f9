export { clarifyTool } from "./asks.js";
export { demoModel } from "./demo/model.js";
export { demoTools } from "./demo/tools.js";
export { type EngineOptions, engine } from "./engine.js";
export * from "./model.js";
export { costOf, pricesWrittenOn } from "./prices.js";
export { type Choice, chooseModel, type ModelEnv } from "./providers/choose.js";
export { spawnTool } from "./spawn.js";
export * from "./tool.js";
