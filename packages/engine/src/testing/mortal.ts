// An agent that dies at a chosen moment and is succeeded by another on the same log: what a kill leaves of an agent is the
// log and nothing else. The dead one is not told: whatever it still writes never arrives.

import type { Facts } from "@runwire/protocol";
import type { Agent, AgentHost, MakeAgent, RunKey } from "@runwire/server";

export interface Mortal {
  readonly make: MakeAgent;
  /** Lets it write so many times more, and die then. */
  killAfter(writes: number): void;
  /** How often it has written since that was said. */
  readonly writes: number;
}

export function mortal(makeAgent: MakeAgent): Mortal {
  let left = Number.POSITIVE_INFINITY;
  let writes = 0;
  const taken = new Map<string, RunKey>();
  return {
    killAfter(count) {
      left = count;
      writes = 0;
      taken.clear();
    },
    get writes() {
      return writes;
    },
    make(host): Agent {
      let agent = makeAgent(life());
      const take = (run: RunKey): void => {
        taken.set(run.run_id, run);
        agent.take(run);
      };

      function life(): AgentHost {
        let isDead = false;
        const living = async <T>(write: () => Promise<T>): Promise<T> => {
          if (!isDead && left > 0) {
            left -= 1;
            writes += 1;
            return write();
          }
          if (!isDead) {
            isDead = true;
            left = Number.POSITIVE_INFINITY;
            setImmediate(revive);
          }
          return new Promise<T>(() => {});
        };
        const { writer } = host;
        return {
          ...host,
          writer: {
            change: (key, decide) => living(() => writer.change(key, decide)),
            append: (key, drafts, claim) => living(() => writer.append(key, drafts, claim)),
            spawn: (key, child, idempotency) =>
              living(async () => {
                const made = await writer.spawn(key, child, idempotency);
                taken.set(made.child_id, { ...key, run_id: made.child_id });
                return made;
              }),
          },
        };
      }

      function revive(): void {
        agent = makeAgent(life());
        for (const run of taken.values()) agent.take(run);
      }

      return {
        planningGate: (name) => agent.planningGate(name),
        take,
        checkpoints: {
          kept: (run) => agent.checkpoints.kept(run),
          restore: (run, checkpoint_id) => agent.checkpoints.restore(run, checkpoint_id),
        },
        forget: (roots) => agent.forget(roots),
        sweep: () => agent.sweep(),
        check: (asked) => agent.check(asked),
        checkInput: (tool, input: Facts) => agent.checkInput(tool, input),
        close: () => agent.close(),
      };
    },
  };
}
