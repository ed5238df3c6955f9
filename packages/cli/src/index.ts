import { fail } from "./fail.js";
import { makeProgram } from "./program.js";

makeProgram(process.argv[2])
  .then((program) => program.parseAsync())
  .catch(fail);
