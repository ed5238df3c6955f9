// The form in which runs are exported: one object with one member, named after the word. It has no envelope.

import type { Facts } from "../../events.js";
import { isObject } from "../../parse.js";
import { malformed } from "./decode.js";
import type { LoomMessage } from "./encode.js";

/** Words whose name is not just written in another way. */
const keys: { readonly [type: string]: string } = {
  node_enter: "TaskStart",
  node_exit: "TaskEnd",
  message_chunk: "Messages",
  thought_chunk: "Messages",
};
const types: { readonly [key: string]: string } = { TaskStart: "node_enter", TaskEnd: "node_exit" };

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

export function toExport({ message }: LoomMessage): Facts {
  const { type, ...members } = message;
  if (typeof type !== "string") return { Reply: members };
  const key = keys[type] ?? pascal(type);
  switch (type) {
    case "values":
      return { [key]: members.state };
    case "custom":
      return { [key]: members.value };
    case "message_chunk":
    case "thought_chunk": {
      const { content, id, namespace = null, ...rest } = members;
      const kind = type === "message_chunk" ? "Message" : "Thinking";
      return { [key]: { chunk: { content, kind }, metadata: { loom_node: id, namespace }, ...rest } };
    }
    default: {
      const { id, namespace = null, ...rest } = members;
      if (!nodes.has(type)) return { [key]: members };
      return { [key]: { node_id: id, ...rest, ...(spaces.has(type) ? { namespace } : {}) } };
    }
  }
}

export function fromExport(exported: Facts): Facts {
  const [[key = "", value] = [], more] = Object.entries(exported);
  if (key === "" || more !== undefined) throw malformed("an exported event has one member");
  if (key === "Values") return { type: "values", state: value };
  if (key === "Custom") return { type: "custom", value };
  if (!isObject(value)) throw malformed(`${key}: it must be an object`);
  if (key === "Reply") return value;
  if (key === "Messages") {
    const { chunk, metadata, ...rest } = value;
    if (!isObject(chunk) || !isObject(metadata))
      throw malformed("Messages: `chunk` and `metadata` must be objects");
    const type = chunk.kind === "Thinking" ? "thought_chunk" : "message_chunk";
    return { type, content: chunk.content, id: metadata.loom_node, namespace: metadata.namespace, ...rest };
  }
  const type = types[key] ?? snake(key);
  if (!nodes.has(type)) return { type, ...value };
  const { node_id, ...rest } = value;
  return { type, id: node_id, ...rest };
}

function pascal(type: string): string {
  return type.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function snake(key: string): string {
  return key.replace(/[A-Z]/g, (letter, at: number) => `${at === 0 ? "" : "_"}${letter.toLowerCase()}`);
}
