// Dialects as flags name them: all that the protocol has.

import { type Dialect, dialects, runwire } from "@runwire/protocol";
import { Option } from "commander";

export function dialectOption(flags: string, does: string): Option {
  return new Option(flags, does).choices([...dialects.keys()]);
}

export function dialectOf(name: string = runwire.name): Dialect {
  const dialect = dialects.get(name);
  if (dialect === undefined) throw new Error(`there is no dialect ${name}`);
  return dialect;
}
