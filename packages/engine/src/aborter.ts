import { setMaxListeners } from "node:events";

/** One that any number may listen to: every run listens to the agent's, every call to its run's. */
export function aborter(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
