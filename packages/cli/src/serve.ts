import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { systemClock } from "@runwire/server/operate";
import type { Command } from "commander";
import { fail } from "./fail.js";
import { addSettingOptions } from "./setting-options.js";
import { readSettings } from "./settings.js";

// Much of what a server keeps lives for minutes, so V8 fills its old space fast and marks it often, with helpers that
// take a whole core for as long as that lasts. It may grow to four times of what is alive before it is marked again, where
// there is room for that.
const heapGrowth = "--heap-growing-percent=300";
const roomBytes = 1024 * 1024 * 1024;

export function addServe(program: Command): void {
  const serve = program.command("serve").description("run the gateway");
  addSettingOptions(serve);
  serve.action(async (flags: { readonly [flag: string]: unknown }) => {
    const settings = readSettings(flags, process.env);
    if (getHeapStatistics().heap_size_limit >= roomBytes) setFlagsFromString(heapGrowth);
    // Loaded only now: every other command starts quicker without it.
    const [{ startGateway }, { builtInAgent }] = await Promise.all([
      import("@runwire/server"),
      import("./agent.js"),
    ]);
    const gateway = await startGateway(settings, systemClock, builtInAgent(process.env, settings));
    const { dataFolder, durability } = settings;
    const signals = ["SIGTERM", "SIGINT"] as const;
    const leave = (): void => {
      // Asked twice, it is ended as any process is: what was answered is on disk.
      for (const signal of signals) process.off(signal, leave);
      gateway.close().then(
        () => process.exit(0),
        (error: unknown) => fail(error),
      );
    };
    for (const signal of signals) process.on(signal, leave);
    // Last: whoever reads it may tell the server to leave in the next moment.
    process.stdout.write(`runwire listening on ${gateway.url}, data in ${dataFolder} (${durability})\n`);
  });
}
