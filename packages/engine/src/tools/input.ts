// What a model hands to a tool is checked against the tool's own schema before the tool sees it. What is wrong is named
// in words that the model can mend it by. Only schemas that we wrote come here: one from elsewhere would be compiled to
// code, and its patterns would run in this process.

import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import { type Tool, type ToolContext, ToolFailure } from "../tool.js";
import { toolLimits } from "./limits.js";

export interface CheckedTool<Input> extends Omit<Tool, "run"> {
  run(input: Input, context: ToolContext): Promise<unknown>;
}

/** The tool, run only with what fits it. */
export function checkedTool<Input>(tool: CheckedTool<Input>): Tool {
  const check = inputCheck<Input>(tool.input_schema);
  return {
    ...tool,
    check: (input) => void check(input),
    run: async (input, context) => tool.run(check(input), context),
  };
}

/** Gives the input back as what the schema says it is, or throws a ToolFailure `invalid-input`. */
export function inputCheck<Input>(schema: Tool["input_schema"]): (input: unknown) => Input {
  let compiled: ValidateFunction<Input> | undefined;
  return (input) => {
    // When it is first needed: compiling all tools' would take a good part of a server's start.
    compiled ??= new Ajv({ allErrors: true, strict: true }).compile<Input>(schema);
    const fits = compiled;
    if (fits(input)) return input;
    throw new ToolFailure("invalid-input", faultsIn(fits.errors ?? []));
  };
}

function faultsIn(errors: readonly ErrorObject[]): string {
  const told = errors.slice(0, toolLimits.faultsToldMax).map(faultIn);
  const untold = errors.length - told.length;
  return `The input does not fit: ${told.join("; ")}${untold > 0 ? `; and ${untold} more` : ""}.`;
}

function faultIn({ keyword, instancePath, message, params }: ErrorObject): string {
  const where = `input${instancePath.replaceAll("/", ".")}`.slice(0, 200);
  if (keyword === "additionalProperties") {
    return `${where} has no member ${JSON.stringify(String(params.additionalProperty).slice(0, 100))}`;
  }
  if (keyword === "enum") return `${where} must be one of ${JSON.stringify(params.allowedValues)}`;
  return `${where} ${message}`;
}
