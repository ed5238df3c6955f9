// What is wrong with a stream, message by message, with the rule that says so.

import type { Dialect } from "./dialect.js";
import { loomValidator } from "./dialects/loom/validate.js";
import { runtimeValidator } from "./dialects/runtime/validate.js";
import { RunwireError } from "./errors.js";

export interface Violation {
  readonly rule: string;
  readonly what: string;
}

export interface Validator {
  check(text: string): readonly Violation[];
  /** What is wrong with a stream that ends here. */
  end(): readonly Violation[];
}

/** Rules that a stream may be held to besides those of its dialect. */
export const profiles = ["strict"] as const;
export type Profile = (typeof profiles)[number];

/** A dialect without rules of its own is right where its decoder takes it and its numbers go up. */
export function validatorOf(dialect: Dialect, profile?: Profile): Validator {
  if (dialect.name === "runtime") return runtimeValidator(profile === undefined ? {} : { profile });
  if (dialect.name === "runtime-strict") return runtimeValidator({ profile: "strict" });
  if (profile !== undefined)
    throw new RunwireError("KAI-STREAM-PARAM-0001", `dialect ${dialect.name} has no profile ${profile}`);
  if (dialect.name === "loom") return loomValidator();
  const decoder = dialect.decoder();
  const { cursor } = dialect;
  let of: string | undefined;
  let last = 0;
  return {
    check(data) {
      try {
        const violations: Violation[] = [];
        for (const draft of decoder.decode({ data })) {
          const number = typeof cursor === "string" ? draft[cursor] : undefined;
          if (number === undefined) continue;
          // Each run has numbers of its own.
          if (draft.run_id !== of) [of, last] = [draft.run_id, 0];
          if (number <= last)
            violations.push({ rule: "RW-CURSOR-1", what: `\`${cursor}\` ${number} comes after ${last}` });
          last = Math.max(last, number);
        }
        return violations;
      } catch (error) {
        if (!(error instanceof RunwireError)) throw error;
        return [{ rule: error.code, what: error.message }];
      }
    },
    end: () => [],
  };
}
