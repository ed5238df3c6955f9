import { ToolFailure } from "../tool.js";
import type { Hook } from "./hook.js";

/** The tool's own schema, before anything else sees the input: what does not fit reaches neither hook nor tool. */
export const inputCheckHook: Hook = {
  name: "input-check",
  points: ["pre_tool_use"],
  required: true,
  takesTime: false,
  appliesTo: ({ check }) => check !== undefined,
  async run({ tool, input }) {
    try {
      tool.check?.(input);
      return { kind: "go" };
    } catch (error) {
      if (!(error instanceof ToolFailure)) throw error;
      return { kind: "refuse", why: error.message, failure: error.kind };
    }
  },
};
