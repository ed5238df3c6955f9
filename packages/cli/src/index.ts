import { makeProgram } from "./program.js";
import { fail } from "./serve.js";

makeProgram().parseAsync().catch(fail);
