// Which model a run gets that asks for none.

import { type Check, doubtful, right, why, wrong } from "./finding.js";

export const models: Check = async ({ env }) => {
  const { demoModel, standardModel } = await import("@runwire/engine");
  const demo = demoModel({ wordMs: 0 });
  try {
    const model = standardModel({ env, demo });
    if (model === null) {
      const todo = "set RUNWIRE_MODEL, as in local/<name>, unless every run says which";
      return [doubtful("models", "a run that asks for no model is refused", todo)];
    }
    if (model === demo) return [right("models", "runs that ask for none get the demo, which needs no key")];
    return [right("models", `runs that ask for none get ${model.provider}/${model.name}`)];
  } catch (error) {
    return [wrong("models", why(error), "mend the variable; the server does not start until then")];
  }
};
