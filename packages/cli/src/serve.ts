import { systemClock } from "@runwire/server/operate";
import type { Command } from "commander";
import { fail } from "./fail.js";
import { addSettingOptions } from "./setting-options.js";
import { readSettings } from "./settings.js";

export function addServe(program: Command): void {
  const serve = program.command("serve").description("run the gateway");
  addSettingOptions(serve);
  serve.action(async (flags: { readonly [flag: string]: unknown }) => {
    const settings = readSettings(flags, process.env);
    // Loaded only now: every other command starts quicker without it.
    const [{ startGateway }, { builtInAgent }] = await Promise.all([
      import("@runwire/server"),
      import("./agent.js"),
    ]);
    const gateway = await startGateway(settings, systemClock, builtInAgent(process.env, settings));
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
