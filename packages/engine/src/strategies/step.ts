import type { Loop } from "../loop.js";
import { handOn } from "../steers.js";
import type { Work } from "../work.js";
import { gotStep } from "./got-steps.js";
import { totStep } from "./tot-steps.js";

/** The next thing that the run's strategy has to do. What people have said meanwhile is heard before it. */
export async function strategyStep(loop: Loop, work: Work): Promise<void> {
  const { strategy, steers } = work;
  if (steers.length > 0) return handOn(loop.log, steers);
  if (strategy?.kind === "tot") await totStep(loop, work, strategy);
  else if (strategy?.kind === "got") await gotStep(loop, work, strategy);
}
