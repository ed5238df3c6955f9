// The settings as a server would read them, but with every mistake told and not only the first.

import { messageOf } from "@runwire/protocol";
import { type AllSettings, allDefaults } from "../setting-rows.js";
import { readEach } from "../settings.js";
import { type Finding, right, wrong } from "./finding.js";

interface Flags {
  readonly [flag: string]: unknown;
}

/** What cannot be read is left out, so that the other checks go on. */
export function settingsWithFindings(
  flags: Flags,
  env: NodeJS.ProcessEnv,
): { readonly settings: AllSettings; readonly findings: readonly Finding[] } {
  const findings: Finding[] = [];
  const tell = (error: unknown): void => {
    findings.push(wrong("settings", messageOf(error), "mend it; `runwire serve --help` lists all settings"));
  };
  const given = Object.entries(flags).filter(([flag, value]) => {
    try {
      readEach({ [flag]: value }, {});
      return true;
    } catch (error) {
      // The file's mistakes come up again and again here; they are told below.
      if (!messageOf(error).startsWith("--")) return true;
      tell(error);
      return false;
    }
  });
  const variables = Object.entries(env).filter(([name, value]) => {
    try {
      readEach({}, { [name]: value });
      return true;
    } catch (error) {
      if (!messageOf(error).startsWith(name)) return true;
      tell(error);
      return false;
    }
  });
  const goodFlags = Object.fromEntries(given);
  const goodVariables = Object.fromEntries(variables);
  try {
    const settings = readEach(goodFlags, goodVariables);
    return { settings, findings: findings.length > 0 ? findings : [right("settings", "all are possible")] };
  } catch (error) {
    tell(error);
    // Where the data is matters most to the other checks.
    const dataFolder = goodFlags.data ?? goodVariables.RUNWIRE_DATA ?? allDefaults.dataFolder;
    return { settings: { ...allDefaults, dataFolder: String(dataFolder) }, findings };
  }
}
