import { relative, resolve } from "node:path";
import { startGateway } from "@runwire/server";
import type { Command } from "commander";
import { readSettings, settingRows, variable } from "./settings.js";

export function addServe(program: Command): void {
  const serve = program.command("serve").description("run the gateway");
  for (const row of Object.values(settingRows)) {
    serve.option(`--${row.flag} <value>`, `${row.does}: ${row.takes} (${variable(row)})`);
  }
  serve.action(async (flags: { readonly [flag: string]: unknown }) => {
    const settings = readSettings(flags, process.env);
    const gateway = await startGateway(settings);
    const folder = relative(process.cwd(), resolve(settings.dataFolder)) || ".";
    process.stdout.write(`runwire listening on ${gateway.url}, data in ${folder} (${settings.durability})\n`);
    let leaving = false;
    const leave = (): void => {
      if (leaving) return;
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
