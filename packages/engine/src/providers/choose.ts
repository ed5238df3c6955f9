// Which model a run gets, from what was asked for and which keys there are. Without any key it is the demo.

import { RunwireError } from "@runwire/protocol";
import type { Model } from "../model.js";
import { anthropicModel, localModel, type Opening, openaiModel } from "./known.js";

export interface ModelEnv {
  readonly [name: string]: string | undefined;
}

/** The first with a key is the one for runs that ask for none in particular. */
const providers = {
  anthropic: {
    open: anthropicModel,
    baseUrl: "https://api.anthropic.com/v1",
    urlName: "ANTHROPIC_BASE_URL",
    keyName: "ANTHROPIC_API_KEY",
    model: "claude-sonnet-5-5",
    family: /^claude-/,
  },
  openai: {
    open: openaiModel,
    baseUrl: "https://api.openai.com/v1",
    urlName: "OPENAI_BASE_URL",
    keyName: "OPENAI_API_KEY",
    model: "gpt-6.1-sol",
    family: /^(gpt-|chatgpt-|o\d)/,
  },
} as const;

/** Any server that speaks OpenAI's chat completions. */
const local = { urlName: "RUNWIRE_OPENAI_BASE_URL", keyName: "RUNWIRE_OPENAI_API_KEY" } as const;

const modelName = "RUNWIRE_MODEL";

type ProviderName = keyof typeof providers;
type Rest = Pick<Opening, "clock" | "limits">;

export interface Choice extends Rest {
  readonly env: ModelEnv;
  readonly demo: Model;
}

/**
 * `asked` is `anthropic/claude-…`, `openai/gpt-…`, `local/…`, `demo`, a bare name, or null for whatever there is.
 * Throws a RunwireError that names what is missing.
 */
export function chooseModel(asked: string | null, { env, demo, ...rest }: Choice): Model {
  const set = (name: string): string => env[name]?.trim() ?? "";
  const hasLocal = set(local.urlName) !== "";
  const urlIn = (name: string): string => {
    const url = set(name);
    if (url !== "" && !isHttpUrl(url))
      throw new RunwireError("KAI-MODEL-NAME-0001", `${name} is no http or https address`);
    return url;
  };

  const openKnown = (name: ProviderName, model: string): Model => {
    const { open, baseUrl, urlName, keyName } = providers[name];
    const key = set(keyName);
    if (key === "") throw new RunwireError("KAI-MODEL-KEY-0001", `${name}/${model} needs ${keyName}`);
    const given = urlIn(urlName);
    // Anthropic's own libraries take the address without the version, others with it.
    const other = name === "anthropic" ? given.replace(/\/*(\/v1)?\/*$/, "/v1") : given;
    return open({ model, key, baseUrl: given === "" ? baseUrl : other, keyName, ...rest });
  };
  const openLocal = (model: string): Model => {
    const baseUrl = urlIn(local.urlName);
    if (baseUrl === "") throw new RunwireError("KAI-MODEL-KEY-0001", `local/${model} needs ${local.urlName}`);
    return localModel({ model, key: set(local.keyName), baseUrl, keyName: local.keyName, ...rest });
  };

  const wish = asked?.trim() || set(modelName);
  if (wish === "") {
    const first = names.find((name) => set(providers[name].keyName) !== "");
    if (first !== undefined) return openKnown(first, providers[first].model);
    if (!hasLocal) return demo;
    throw new RunwireError(
      "KAI-MODEL-NAME-0001",
      `${local.urlName} is set; say which model, as in local/<name>`,
    );
  }
  if (wish === "demo") return demo;
  const slash = wish.indexOf("/");
  const [prefix, model] = slash < 0 ? ["", wish] : [wish.slice(0, slash), wish.slice(slash + 1)];
  if (model === "") throw new RunwireError("KAI-MODEL-NAME-0001", `${wish} names no model`);
  if (isKnown(prefix)) return openKnown(prefix, model);
  if (prefix === "local") return openLocal(model);

  const family = names.find((name) => providers[name].family.test(wish));
  if (family !== undefined && (set(providers[family].keyName) !== "" || !hasLocal))
    return openKnown(family, wish);
  if (hasLocal) return openLocal(wish);
  throw new RunwireError("KAI-MODEL-NAME-0001", `${wish}; say whose it is: anthropic/…, openai/… or local/…`);
}

/**
 * The model of runs that ask for none; null where each has to say, because an address has many. Throws an Error that
 * names the variable which is wrong: whoever starts a server hears of it then, and not from the first run.
 */
export function standardModel(choice: Choice): Model | null {
  const { env } = choice;
  for (const name of [...names.map((known) => providers[known].urlName), local.urlName]) {
    const url = env[name]?.trim() ?? "";
    if (url !== "" && !isHttpUrl(url)) throw new Error(`${name} is no http or https address`);
  }
  const wish = env[modelName]?.trim() ?? "";
  const hasKey = names.some((name) => (env[providers[name].keyName]?.trim() ?? "") !== "");
  if (wish === "" && !hasKey && (env[local.urlName]?.trim() ?? "") !== "") return null;
  try {
    return chooseModel(null, choice);
  } catch (error) {
    throw new Error(`${modelName}: ${(error as Error).message}`, { cause: error });
  }
}

const names = Object.keys(providers) as readonly ProviderName[];

function isKnown(name: string): name is ProviderName {
  return Object.hasOwn(providers, name);
}

function isHttpUrl(text: string): boolean {
  try {
    return ["http:", "https:"].includes(new URL(text).protocol);
  } catch {
    return false;
  }
}
