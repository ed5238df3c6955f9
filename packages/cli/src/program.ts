import { createRequire } from "node:module";
import { Command } from "commander";
import { addApprovals } from "./approvals.js";
import { addAnswers } from "./approve.js";
import { addConvert, addValidate } from "./convert.js";
import { addDoctor } from "./doctor/doctor.js";
import { addEvidence } from "./evidence.js";
import { addForks } from "./forks.js";
import { addInbox } from "./inbox.js";
import { addIngest } from "./ingest.js";
import { addKeys } from "./keys.js";
import { addNats } from "./nats.js";
import { addOrders } from "./orders.js";
import { addRecord } from "./record.js";
import { addReplay } from "./replay.js";
import { addRpc } from "./rpc.js";
import { addRuns } from "./runs.js";
import { addServe } from "./serve.js";
import { addRun, addTail } from "./tail.js";

const { version } = createRequire(import.meta.url)("../package.json") as { version: string };

export function makeProgram(): Command {
  const program = new Command("runwire");
  program.version(version, "-V, --version");
  program.description("One durable log for every agent run, on every wire.");
  program.hook("preAction", (_program, command) => {
    const at = command.registeredArguments.findIndex((argument) => argument.name() === "run");
    if (command.args[at]?.trim() === "") throw new Error("<run> is empty; name a run by its id");
  });
  program.commandsGroup("Watch:");
  addRun(program);
  addTail(program);
  addRuns(program);
  addRecord(program);
  addReplay(program);
  addEvidence(program);
  program.commandsGroup("Dialects:");
  addConvert(program);
  addValidate(program);
  addIngest(program);
  addRpc(program);
  addNats(program);
  program.commandsGroup("Answer:");
  addInbox(program);
  addAnswers(program);
  addApprovals(program);
  addOrders(program);
  program.commandsGroup("Try again:");
  addForks(program);
  program.commandsGroup("Serve:");
  addServe(program);
  addKeys(program);
  addDoctor(program);
  return program;
}
