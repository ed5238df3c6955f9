// The commands of whoever runs a server. They load the server's code, which takes longer than most of the others run.

import type { Command } from "commander";
import { addDoctor } from "./doctor/doctor.js";
import { addKeys } from "./keys.js";
import { addServe } from "./serve.js";

export function addServing(program: Command): void {
  program.commandsGroup("Serve:");
  addServe(program);
  addKeys(program);
  addDoctor(program);
}
