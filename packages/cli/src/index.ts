import { createRequire } from "node:module";
import { Command } from "commander";
import { addDoctor } from "./doctor/doctor.js";
import { addKeys } from "./keys.js";
import { addServe, fail } from "./serve.js";

const { version } = createRequire(import.meta.url)("../package.json") as { version: string };
const program = new Command("runwire");
program.version(version, "-V, --version");
program.description("One durable log for every agent run, on every wire.");
addServe(program);
addKeys(program);
addDoctor(program);
program.parseAsync().catch(fail);
