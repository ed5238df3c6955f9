export * from "./model.js";
export * from "./tool.js";
