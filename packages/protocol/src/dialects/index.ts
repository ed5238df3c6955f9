import type { Dialect } from "../dialect.js";
import { koder } from "./koder.js";
import { runtime, runtimeJsonRpc } from "./runtime/index.js";
import { runwire } from "./runwire.js";

/** What is spoken, by name. The first is the default on the wire. */
export const dialects: ReadonlyMap<string, Dialect> = new Map(
  ([koder, runwire, runtime, runtimeJsonRpc] as readonly Dialect[]).map((dialect) => [dialect.name, dialect]),
);
