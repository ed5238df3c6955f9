import { RunwireError } from "@runwire/protocol";
import { expect, test } from "vitest";
import type { Model } from "../model.js";
import { chooseModel, type ModelEnv, standardModel } from "./choose.js";

const demo: Model = {
  name: "demo",
  provider: "runwire",
  takesPrefill: true,
  async *stream() {},
};

const both: ModelEnv = { ANTHROPIC_API_KEY: "a", OPENAI_API_KEY: "o" };
const all: ModelEnv = { ...both, RUNWIRE_OPENAI_BASE_URL: "http://127.0.0.1:1/v1" };
const onlyLocal: ModelEnv = { RUNWIRE_OPENAI_BASE_URL: "http://127.0.0.1:1/v1" };

function choose(asked: string | null, env: ModelEnv): string {
  const { provider, name } = chooseModel(asked, { env, demo });
  return `${provider}/${name}`;
}

test.each([
  [null, {}, "runwire/demo"],
  ["", {}, "runwire/demo"],
  [null, { OPENAI_API_KEY: " " }, "runwire/demo"],
  ["demo", both, "runwire/demo"],
  [null, both, "anthropic/claude-sonnet-5-5"],
  [null, { OPENAI_API_KEY: "o" }, "openai/gpt-6.1-sol"],
  [null, { ...both, RUNWIRE_MODEL: "openai/gpt-5" }, "openai/gpt-5"],
  ["anthropic/claude-opus-5-5", both, "anthropic/claude-opus-5-5"],
  ["claude-haiku-4-5", both, "anthropic/claude-haiku-4-5"],
  ["gpt-6-luna", both, "openai/gpt-6-luna"],
  ["o3", both, "openai/o3"],
  ["local/qwen3:8b", all, "local/qwen3:8b"],
  ["local/meta/llama", all, "local/meta/llama"],
  ["qwen3:8b", all, "local/qwen3:8b"],
  ["meta/llama", onlyLocal, "local/meta/llama"],
  ["gpt-oss:20b", onlyLocal, "local/gpt-oss:20b"],
] as const)("%s with the keys of %j is %s", (asked, env, expected) => {
  expect(choose(asked, env)).toBe(expected);
});

test.each([
  ["anthropic/claude-opus-5-5", { OPENAI_API_KEY: "o" }, "KAI-MODEL-KEY-0001", "ANTHROPIC_API_KEY"],
  ["gpt-5", {}, "KAI-MODEL-KEY-0001", "OPENAI_API_KEY"],
  ["local/llama", both, "KAI-MODEL-KEY-0001", "RUNWIRE_OPENAI_BASE_URL"],
  ["llama", both, "KAI-MODEL-NAME-0001", "llama"],
  ["openai/", both, "KAI-MODEL-NAME-0001", "names no model"],
  [null, onlyLocal, "KAI-MODEL-NAME-0001", "local/<name>"],
  [
    "local/x",
    { RUNWIRE_OPENAI_BASE_URL: "file:///etc/passwd" },
    "KAI-MODEL-NAME-0001",
    "RUNWIRE_OPENAI_BASE_URL",
  ],
  [null, { OPENAI_API_KEY: "o", OPENAI_BASE_URL: "nowhere" }, "KAI-MODEL-NAME-0001", "OPENAI_BASE_URL"],
] as const)("%s with the keys of %j is refused, and says what is missing", (asked, env, code, words) => {
  const refusal = attempt(() => choose(asked, env));
  expect(refusal).toMatchObject({ code, message: expect.stringContaining(words) });
  expect(refusal).toBeInstanceOf(RunwireError);
});

test.each([
  [{}, "runwire/demo"],
  [{ RUNWIRE_MODEL: " " }, "runwire/demo"],
  [{ ...both, RUNWIRE_MODEL: "demo" }, "runwire/demo"],
  [both, "anthropic/claude-sonnet-5-5"],
  [onlyLocal, "none"],
  [{ ...onlyLocal, RUNWIRE_MODEL: "qwen3:8b" }, "local/qwen3:8b"],
] as const)("with %j, a run that asks for no model gets %s", (env, expected) => {
  const model = standardModel({ env, demo });
  expect(model === null ? "none" : `${model.provider}/${model.name}`).toBe(expected);
});

test.each([
  [{ RUNWIRE_MODEL: "foo" }, "RUNWIRE_MODEL: unknown model: foo"],
  [{ RUNWIRE_MODEL: "openai/gpt-5", ANTHROPIC_API_KEY: "a" }, "needs OPENAI_API_KEY"],
  [{ RUNWIRE_OPENAI_BASE_URL: "notaurl" }, "RUNWIRE_OPENAI_BASE_URL is no http"],
  [{ ...both, OPENAI_BASE_URL: "nowhere" }, "OPENAI_BASE_URL is no http"],
] as const)("no server starts with %j", (env, words) => {
  expect(() => standardModel({ env, demo })).toThrow(words);
});

test.each([
  ["claude-3-5-sonnet-20241022", true],
  ["claude-sonnet-4-20250514", true],
  ["claude-opus-4-1-20250805", true],
  ["claude-haiku-4-5", true],
  ["claude-sonnet-4-5-20250929", true],
  ["claude-opus-4-6", false],
  ["claude-sonnet-4-6", false],
  ["claude-sonnet-5", false],
  ["claude-opus-5-5", false],
  ["claude-fable-5-1", false],
  ["openai/gpt-5", false],
] as const)("whether %s takes a prefill: %s", (asked, expected) => {
  expect(chooseModel(asked, { env: both, demo }).takesPrefill).toBe(expected);
});

function attempt(act: () => unknown): unknown {
  try {
    return act();
  } catch (error) {
    return error;
  }
}
