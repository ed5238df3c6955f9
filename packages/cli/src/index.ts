import { fail } from "./fail.js";
import { makeProgram } from "./program.js";

// Whoever read it, `head` or a pager, has seen enough: no reason to break, and none for a server to stop. Commands that end
// with their reader listen for themselves.
process.stdout.on("error", () => {});

makeProgram(process.argv[2])
  .then((program) => program.parseAsync())
  .catch(fail);
