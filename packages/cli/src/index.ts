import { fail } from "./fail.js";
import { makeProgram } from "./program.js";
import { minded } from "./stdout.js";

makeProgram(process.argv[2])
  .then((program) => minded(program).parseAsync())
  .catch(fail);
