import { type Command, Option } from "commander";
import { type AllSettings, presetOf, settingGroups, settingRows, variable } from "./setting-rows.js";

/** A flag for every setting that is no secret, by groups. */
export function addSettingOptions(command: Command): void {
  for (const group of settingGroups) {
    for (const [name, row] of Object.entries(settingRows)) {
      if (row.group !== group || row.secret === true) continue;
      const preset = presetOf(name as keyof AllSettings);
      const text = `${row.does}: ${row.takes} (${variable(row)}, default ${preset})`;
      command.addOption(new Option(`--${row.flag} <value>`, text).helpGroup(`${group}:`));
    }
  }
  const secrets = Object.values(settingRows).filter(({ secret }) => secret === true);
  command.addHelpText(
    "after",
    `\nOnly as variables or in runwire.config.json:\n${secrets.map((row) => `  ${variable(row)}  ${row.does}: ${row.takes}`).join("\n")}\n`,
  );
}
