import type { Dialect } from "../dialect.js";
import { koder } from "./koder.js";
import { loom, loomExport } from "./loom/loom.js";
import { runtime, runtimeJsonRpc, runtimeStrict } from "./runtime/index.js";
import { runwire } from "./runwire.js";

/** What is spoken, by name. The first is the default on the wire. */
export const dialects: ReadonlyMap<string, Dialect> = new Map(
  [koder, runwire, loom, loomExport, runtime, runtimeStrict, runtimeJsonRpc].map((dialect) => [
    dialect.name,
    dialect as Dialect,
  ]),
);
