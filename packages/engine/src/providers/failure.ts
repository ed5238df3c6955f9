// What went wrong, in our words. A provider's own words are kept short and without keys; its request and response,
// which hold the conversation, are left behind altogether.

import { APICallError } from "@ai-sdk/provider";
import { limits } from "../limits.js";
import { type FailureKind, ModelFailure, type ModelUsage } from "../model.js";
import { retryMsOf } from "./retry-after.js";

export interface FailureFacts {
  readonly provider: string;
  /** What must not be seen in any message. */
  readonly secrets: readonly string[];
  /** Where the key is set; undefined where nobody knows. */
  readonly keyName?: string | undefined;
  readonly nowMs: number;
  readonly usage: ModelUsage | undefined;
}

export function failureOf(error: unknown, facts: FailureFacts): ModelFailure {
  if (error instanceof ModelFailure) return error;
  const { provider, secrets, keyName, nowMs, usage } = facts;
  const make = (kind: FailureKind, message: string, retryMs = 0): ModelFailure => {
    const todo = kind === "unauthorized" && keyName !== undefined ? `. Check ${keyName}` : "";
    return new ModelFailure(kind, without(secrets, `${provider} ${message}${todo}`), retryMs, { usage });
  };

  if (APICallError.isInstance(error)) {
    const { statusCode: status, responseHeaders: headers = {} } = error;
    if (status === undefined) return make("broken", `could not be reached: ${short(error.message)}`);
    if (status < 400) return make("broken", "broke off its answer");
    const { code, type, message } = wordsOf(parsed(error.responseBody)) ?? wordsOf(error.data) ?? {};
    const id = headers["x-request-id"] ?? headers["request-id"];
    const words = short(message ?? error.message);
    const told = [
      `answered ${status}`,
      words === "" ? "" : `: ${words}`,
      id === undefined ? "" : ` (request ${id})`,
    ];
    return make(kindOf(code, type, status), told.join(""), retryMsOf(headers, nowMs));
  }
  const words = error instanceof Error ? undefined : wordsOf(error);
  if (words === undefined) return make("broken", "gave an answer that cannot be read");
  return make(
    kindOf(words.code, words.type, undefined),
    `broke off its answer: ${short(words.message ?? "")}`,
  );
}

const kinds: { readonly [word: string]: FailureKind } = {
  rate_limit_error: "rate-limit",
  rate_limit_exceeded: "rate-limit",
  // These come as 429 too, but waiting does not help.
  insufficient_quota: "refused",
  billing_error: "refused",
  billing_hard_limit_reached: "refused",
  overloaded_error: "overloaded",
  api_error: "overloaded",
  server_error: "overloaded",
  internal_server_error: "overloaded",
  timeout_error: "timeout",
  authentication_error: "unauthorized",
  permission_error: "unauthorized",
  invalid_api_key: "unauthorized",
  invalid_request_error: "refused",
  not_found_error: "refused",
  model_not_found: "refused",
  request_too_large: "refused",
  context_length_exceeded: "refused",
};

// A code is exact; a type is exact with one provider and vague with the other, where the status knows more.
function kindOf(code: string | undefined, type: string | undefined, status: number | undefined): FailureKind {
  return known(code) ?? exactStatus(status) ?? known(type) ?? otherStatus(status);
}

function known(word: string | undefined): FailureKind | undefined {
  return word !== undefined && Object.hasOwn(kinds, word) ? kinds[word] : undefined;
}

function exactStatus(status: number | undefined): FailureKind | undefined {
  switch (status) {
    case 401:
    case 403:
      return "unauthorized";
    case 408:
      return "timeout";
    case 429:
      return "rate-limit";
    default:
      return undefined;
  }
}

function otherStatus(status: number | undefined): FailureKind {
  if (status === undefined) return "broken";
  return status >= 500 ? "overloaded" : "refused";
}

interface Words {
  readonly code?: string;
  readonly type?: string;
  readonly message?: string;
}

/** The error itself is one or two members deep: `{ error: { … } }`, `{ response: { error: { … } } }`. */
function wordsOf(value: unknown): Words | undefined {
  if (typeof value === "string") return { message: value };
  if (typeof value !== "object" || value === null) return undefined;
  const { error, response, code, type, message } = value as { readonly [member: string]: unknown };
  const inner = wordsOf(error) ?? wordsOf(response);
  if (inner !== undefined) return inner;
  if (code === undefined && type === undefined && message === undefined) return undefined;
  return {
    ...(typeof code === "string" ? { code } : {}),
    ...(typeof type === "string" ? { type } : {}),
    ...(typeof message === "string" ? { message } : {}),
  };
}

function parsed(body: string | undefined): unknown {
  if (body === undefined) return undefined;
  try {
    return JSON.parse(body);
  } catch {
    // Proxies answer in HTML; the status says enough.
    return undefined;
  }
}

function short(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= limits.failureCharsMax ? line : `${line.slice(0, limits.failureCharsMax)}…`;
}

function without(secrets: readonly string[], text: string): string {
  const known = secrets.filter((secret) => secret !== "");
  const cleared = known.reduce((rest, secret) => rest.replaceAll(secret, "…"), text);
  // Providers repeat a wrong key with its middle starred out: what is left of it is nobody's business either.
  return cleared.replace(/\bsk-[\w*-]+/g, "sk-…");
}
