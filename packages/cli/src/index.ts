import { fail } from "./fail.js";
import { makeProgram } from "./program.js";
import { minded } from "./stdout.js";

minded(makeProgram()).parseAsync().catch(fail);
