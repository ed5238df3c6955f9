// The form in which runs are exported: one object with one member, named after the word. It has no envelope.

import { malformed } from "../../errors.js";
import type { Facts } from "../../events.js";
import { isObject } from "../../parse.js";
import type { LoomMessage } from "./encode.js";
import { wordOf } from "./words.js";

/** Words whose name is not just written in another way. */
const keys: ReadonlyMap<string, string> = new Map([
  ["node_enter", "TaskStart"],
  ["node_exit", "TaskEnd"],
  ["message_chunk", "Messages"],
  ["thought_chunk", "Messages"],
]);
const types: ReadonlyMap<string, string> = new Map([
  ["TaskStart", "node_enter"],
  ["TaskEnd", "node_exit"],
]);

/** Words that name a node by `node_id` here, and those that also have a namespace. */
const nodes: ReadonlySet<unknown> = new Set([
  "node_enter",
  "node_exit",
  "updates",
  "got_node_start",
  "got_node_complete",
  "got_node_failed",
]);
const spaces: ReadonlySet<unknown> = new Set(["node_enter", "node_exit", "updates"]);

export function toExport({ message, members: whole }: LoomMessage): Facts {
  const { type, ...members } = message;
  if (typeof type !== "string") return { Reply: members };
  const key = keys.get(type) ?? pascal(type);
  if (whole !== undefined) return { [key]: whole };
  switch (type) {
    case "values":
      return { [key]: members.state };
    case "custom":
      return { [key]: members.value };
    case "message_chunk":
    case "thought_chunk": {
      const { content, id, namespace = null, chunk, metadata, ...rest } = members;
      const kind = type === "message_chunk" ? "Message" : "Thinking";
      return {
        [key]: {
          chunk: { ...(isObject(chunk) ? chunk : {}), content, kind },
          metadata: { ...(isObject(metadata) ? metadata : {}), loom_node: id, namespace },
          ...rest,
        },
      };
    }
    default: {
      const { id, namespace = null, ...rest } = members;
      if (!nodes.has(type)) return { [key]: members };
      return { [key]: { node_id: id, ...rest, ...(spaces.has(type) ? { namespace } : {}) } };
    }
  }
}

/** A message; of a type that is not known, its members apart: none of them is an envelope's. */
export function fromExport(exported: Facts): readonly [message: Facts, members?: Facts] {
  const [[key = "", value] = [], more] = Object.entries(exported);
  if (key === "" || more !== undefined) throw malformed("an exported event has one member");
  if (key === "Values") return [{ type: "values", state: value }];
  if (key === "Custom") return [{ type: "custom", value }];
  if (!isObject(value)) throw malformed(`${key}: it must be an object`);
  if (key === "Reply") {
    const { type: _, ...reply } = value;
    return [reply];
  }
  if (key === "Messages") return [chunkOf(value)];
  const type = types.get(key) ?? snake(key);
  if (wordOf(type) === undefined) return [{ type }, value];
  if (!nodes.has(type)) return [{ ...value, type }];
  const { node_id, ...rest } = value;
  return [{ id: node_id, ...rest, type }];
}

/** What is beside the text and the node stays where it was. */
function chunkOf({ chunk, metadata, ...rest }: Facts): Facts {
  if (!isObject(chunk) || !isObject(metadata))
    throw malformed("Messages: `chunk` and `metadata` must be objects");
  const { content, kind, ...inChunk } = chunk;
  const { loom_node: id, namespace, ...inMetadata } = metadata;
  return {
    ...rest,
    ...{ type: kind === "Thinking" ? "thought_chunk" : "message_chunk", content, id, namespace },
    ...(Object.keys(inChunk).length === 0 ? {} : { chunk: inChunk }),
    ...(Object.keys(inMetadata).length === 0 ? {} : { metadata: inMetadata }),
  };
}

function pascal(type: string): string {
  return type.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function snake(key: string): string {
  return key.replace(/[A-Z]/g, (letter, at: number) => `${at === 0 ? "" : "_"}${letter.toLowerCase()}`);
}
