import { createRequire } from "node:module";
import { Command } from "commander";
import { addAnswers } from "./approve.js";
import { addDoctor } from "./doctor/doctor.js";
import { addKeys } from "./keys.js";
import { addOrders } from "./orders.js";
import { addRuns } from "./runs.js";
import { addServe } from "./serve.js";
import { addRun, addTail } from "./tail.js";

const { version } = createRequire(import.meta.url)("../package.json") as { version: string };

export function makeProgram(): Command {
  const program = new Command("runwire");
  program.version(version, "-V, --version");
  program.description("One durable log for every agent run, on every wire.");
  program.commandsGroup("Serve:");
  addServe(program);
  addKeys(program);
  addDoctor(program);
  program.commandsGroup("Watch:");
  addRun(program);
  addTail(program);
  addRuns(program);
  program.commandsGroup("Answer:");
  addAnswers(program);
  addOrders(program);
  return program;
}
