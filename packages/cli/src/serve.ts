import { type Settings, startGateway } from "@runwire/server";
import { type Command, Option } from "commander";
import { presetOf, readSettings, settingGroups, settingRows, variable } from "./settings.js";

export function addServe(program: Command): void {
  const serve = program.command("serve").description("run the gateway");
  for (const group of settingGroups) {
    for (const [name, row] of Object.entries(settingRows)) {
      if (row.group !== group || row.secret === true) continue;
      const preset = presetOf(name as keyof Settings);
      const text = `${row.does}: ${row.takes} (${variable(row)}, default ${preset})`;
      serve.addOption(new Option(`--${row.flag} <value>`, text).helpGroup(`${group}:`));
    }
  }
  const secrets = Object.values(settingRows).filter(({ secret }) => secret === true);
  serve.addHelpText(
    "after",
    `\nOnly as variables or in runwire.config.json:\n${secrets.map((row) => `  ${variable(row)}  ${row.does}: ${row.takes}`).join("\n")}\n`,
  );
  serve.action(async (flags: { readonly [flag: string]: unknown }) => {
    const settings = readSettings(flags, process.env);
    const gateway = await startGateway(settings);
    const { dataFolder, durability } = settings;
    process.stdout.write(`runwire listening on ${gateway.url}, data in ${dataFolder} (${durability})\n`);
    let leaving = false;
    const leave = (): void => {
      // Asked twice, it goes at once: what was answered is on disk.
      if (leaving) process.exit(1);
      leaving = true;
      gateway.close().then(
        () => process.exit(0),
        (error: unknown) => fail(error),
      );
    };
    process.on("SIGTERM", leave);
    process.on("SIGINT", leave);
  });
}

export function fail(error: unknown): void {
  process.stderr.write(`runwire: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
