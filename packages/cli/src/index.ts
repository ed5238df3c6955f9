import { Command } from "commander";
import { addServe, fail } from "./serve.js";

const program = new Command("runwire");
program.description("One durable log for every agent run, on every wire.");
addServe(program);
program.parseAsync().catch(fail);
