// CLOSE: what a reader is told of how each of its connections ended, held against what became of the connection.
//
//   leaving    only where the server left
//   broken     only where the network did something to the connection, its owner stood still, nothing came any more, what
//              it reads could not be read, or a server that left has waited long enough
//   finished   only after the end of the run, which is for whoever reads to say

import type { Status } from "@runwire/client";
import type { Tap } from "./network.js";
import type { World } from "./world.js";

/** Of a server that leaves, for one who takes nothing of it meanwhile. */
const patienceMs = 2000;

export function expectCloses(world: World, tap: Tap): (status: Status) => void {
  const { counts, time } = world;
  let isOpen = false;
  let leftBefore = 0;
  let harmedBefore = 0;
  let unreadBefore = 0;
  const unread = (): number => world.reads.counts.failed + world.reads.counts.damaged;
  return (status) => {
    switch (status.state) {
      case "connecting":
        isOpen = false;
        leftBefore = counts.left;
        harmedBefore = tap.harmed;
        unreadBefore = unread();
        return;
      case "open":
        isOpen = true;
        return;
      case "waiting": {
        const hasLeft = counts.leaves > leftBefore;
        if (status.close === "leaving" && !hasLeft) throw new Error("told leaving, and nobody left");
        // A refusal is no end of a stream; and one that takes silence for an end may be wrong.
        if (!isOpen || status.close !== "broken" || isSilence(status.cause)) return;
        if (
          tap.harmed > harmedBefore ||
          unread() > unreadBefore ||
          (hasLeft && time.ms >= world.leaveMs + patienceMs)
        )
          return;
        throw new Error("told broken, and nobody broke it", { cause: status.cause });
      }
    }
  };
}

function isSilence(cause: unknown): boolean {
  return cause instanceof Error && /^nothing came for |^socket closed with 1006 aborted$/.test(cause.message);
}
