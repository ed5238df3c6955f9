import { RunwireError } from "@runwire/protocol";

/** Failed, or full. What is damaged does not mend by waiting. */
const codes: ReadonlySet<string> = new Set(["KAI-SERVER-STORE-0001", "KAI-SERVER-STORE-0002"]);

/** Whether nothing is wrong but the store: a run that meets this is taken up again from its log. */
export function isStoreDown(error: unknown): boolean {
  return error instanceof RunwireError && codes.has(error.code);
}
