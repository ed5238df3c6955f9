// Messages become drafts, one each; those that say they are derived from another become none.

import type { Decoder, Message } from "../../dialect.js";
import { malformed } from "../../errors.js";
import type { Draft, Facts } from "../../events.js";
import { isId } from "../../ids.js";
import { limits } from "../../limits.js";
import { isObject, isTime, parseWireDraft, unfitJson } from "../../parse.js";
import { parseJson } from "../koder.js";
import { bareOf } from "./bare.js";
import { timestampPattern } from "./schemas.js";
import { hear } from "./tell.js";
import { runtimeTypePattern, typeCharsMax } from "./types.js";

export function decoder(): Decoder {
  return { decode: (message) => decodeValue(parseJson(message.data)), end: () => [] };
}

function decodeValue(value: unknown): readonly Draft[] {
  const message = checked(value);
  if (typeof message.derivedFrom === "string") return [];
  const { child_id, scope, type, payload } = hear(bareOf(message.type, message));
  const hasScope = Object.keys(scope).length > 0;
  const { eventId, timestamp, streamId } = message;
  return [
    parseWireDraft({
      type,
      payload,
      child_id,
      ...(hasScope ? { scope } : {}),
      ...(isId(eventId) ? { id: eventId } : {}),
      ...(isTime(timestamp) ? { ts: timestamp } : {}),
      ...(isId(streamId) ? { run_id: streamId } : {}),
    }),
  ];
}

/** Whoever stores a message numbers it anew, so its own id, time and number may be missing, but not wrong. */
function checked(value: unknown): Facts & { readonly type: string } {
  if (!isObject(value)) throw malformed("a message is a JSON object");
  const { type, eventId, timestamp, sequence } = value;
  if (typeof type !== "string" || type.length > typeCharsMax || !runtimeTypePattern.test(type))
    throw malformed("`type` must be names with dots between them, like `task.created`");
  if (eventId !== undefined && (typeof eventId !== "string" || eventId === ""))
    throw malformed("`eventId` must be a string that is not empty");
  if (timestamp !== undefined && !(typeof timestamp === "string" && timestampPattern.test(timestamp)))
    throw malformed("`timestamp` must be an RFC 3339 time");
  if (sequence !== undefined && !(Number.isSafeInteger(sequence) && (sequence as number) >= 0))
    throw malformed("`sequence` must be a whole number from 0");
  // Before anything is compared with anything, which goes as deep as it is.
  const unfit = unfitJson(value, bounds);
  if (unfit !== undefined) throw malformed(`it ${unfit}`);
  return value as Facts & { type: string };
}

/** Around an event of any depth that is read, also where it stands in `native` beside what is told of it. */
const bounds = { jsonDepthMax: limits.readDepthMax + 4, jsonKeysMax: Number.POSITIVE_INFINITY };

/** One JSON-RPC notification a message. */
export function jsonRpcDecoder(method: string): Decoder {
  return {
    decode({ data }: Message) {
      const value = parseJson(data);
      if (
        !isObject(value) ||
        value.jsonrpc !== "2.0" ||
        value.method !== method ||
        Object.hasOwn(value, "id")
      )
        throw malformed(`a notification is {"jsonrpc":"2.0","method":"${method}","params":{…}}`);
      return decodeValue(value.params);
    },
    end: () => [],
  };
}
