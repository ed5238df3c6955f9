import { limits, unfitJson } from "@runwire/protocol";

/**
 * What is wrong with a value that goes into the log as a member of an event, or undefined: it may be as deep as what
 * producers append, and no deeper, since what reads a log goes down into it. What has many keys is spilled, by its size.
 */
export function unfitForLog(value: unknown): string | undefined {
  return unfitJson({ value }, bounds);
}

const bounds = { jsonDepthMax: limits.jsonDepthMax, jsonKeysMax: Number.POSITIVE_INFINITY };
