// A connection that is lost, and found again: all that a watcher need know of the attempts between.

import type { Status } from "@runwire/client";

export function onLoss(told: (isLost: boolean) => void): (status: Status) => void {
  let isLost = false;
  return ({ state }) => {
    if (state === "connecting" || (state === "waiting") === isLost) return;
    isLost = !isLost;
    told(isLost);
  };
}

/** On stderr, where it is in nobody's way. */
export function sayLoss(base: string, isLost: boolean): void {
  process.stderr.write(
    isLost ? `runwire: the connection to ${base} was lost; trying again\n` : "runwire: connected again\n",
  );
}
