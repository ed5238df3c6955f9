import type { Dialect } from "../dialect.js";
import { koder } from "./koder.js";
import { runwire } from "./runwire.js";

/** What is spoken, by name. The first is the default on the wire. */
export const dialects: ReadonlyMap<string, Dialect> = new Map(
  [koder, runwire].map((dialect) => [dialect.name, dialect as Dialect]),
);
