// Which model a run gets that asks for none, and those that go on where one is given up on.

import { messageOf } from "@runwire/protocol";
import { type Check, doubtful, type Finding, right, wrong } from "./finding.js";

const todo = "mend it; the server does not start until then";

export const models: Check = async ({ env, settings }) => {
  const { chooseModel, demoModel, standardModel } = await import("@runwire/engine");
  const demo = demoModel({ wordMs: 0 });

  function standard(): Finding {
    const model = standardModel({ env, demo });
    if (model === null) {
      const says = "a run that asks for no model is refused";
      return doubtful("models", says, "set RUNWIRE_MODEL, as in local/<name>, unless every run says which");
    }
    if (model === demo) return right("models", "runs that ask for none get the demo, which needs no key");
    return right("models", `runs that ask for none get ${model.provider}/${model.name}`);
  }

  const findings: Finding[] = [];
  try {
    findings.push(standard());
  } catch (error) {
    findings.push(wrong("models", messageOf(error), todo));
  }
  for (const name of settings.fallbackModels) {
    try {
      chooseModel(name, { env, demo });
    } catch (error) {
      findings.push(wrong("models", `fallback model ${messageOf(error)}`, todo));
    }
  }
  return findings;
};
