import { expect, test } from "vitest";
import type { RunLog } from "./log.js";
import { spoken } from "./spoken.js";

test("a call that was called off is over, whatever its tool still says", async () => {
  const written: unknown[] = [];
  const log = { write: async (...drafts: unknown[]) => void written.push(...drafts) } as unknown as RunLog;
  const calledOff = new AbortController();
  const { say, began, over } = spoken(log, "call_1", calledOff.signal, () => 0);
  const end = began({ command: "yes", cwd: ".", pid: undefined });
  say("y");
  await over();
  calledOff.abort();
  say("y");
  end({ kind: "exited", exitCode: 0 } as never);
  say("y");
  expect(await over()).toMatchObject([{ type: "process.exited" }]);
  expect(written).toHaveLength(2);
});
