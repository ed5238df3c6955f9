// One run of a tool: what it says goes into the log as it comes, and what it comes to is handed back.

import { type Facts, messageOf } from "@runwire/protocol";
import type { CallWork } from "./call-work.js";
import { clarify, clarifyTool } from "./clarify.js";
import { limits } from "./limits.js";
import type { Loop } from "./loop.js";
import { violationIn } from "./sandbox.js";
import { spawnTool, waitForChild } from "./spawn.js";
import { spoken } from "./spoken.js";
import { isStoreDown } from "./store-down.js";
import type { Telling } from "./telling.js";
import { type Tool, ToolFailure } from "./tool.js";
import { soonAfter } from "./tools/until.js";

/** The members of its `tool.end`. */
export async function runTool(
  loop: Loop,
  tool: Tool,
  call: CallWork,
  signal: AbortSignal,
  told: Telling,
): Promise<Facts> {
  const { call_id, input } = call;
  const { tenant, run_id } = loop.run;
  const { say, began, over } = spoken(loop.log, call_id, signal, () => loop.host.clock.monotonic());
  const { workspace } = loop;
  try {
    const output =
      tool.name === spawnTool.name
        ? await waitForChild(loop, call, signal)
        : tool.name === clarifyTool.name
          ? await clarify(loop, call, signal)
          : await soonAfter(
              signal,
              limits.toolGraceMs,
              tool.run(input, { tenant, run_id, call_id, signal, workspace, say, began }),
            );
    told.add(...(await over()));
    return { ok: true, output };
  } catch (error) {
    // No failure of the tool's: what becomes of the call, the log says when it can be written again.
    if (isStoreDown(error)) throw error;
    // Where it could not be written, its end cannot be either.
    told.add(...(await over().catch(() => [])), ...violationIn(call_id, tool, error));
    return failureOf(error);
  }
}

export function failureOf(error: unknown): Facts {
  const kind = error instanceof ToolFailure ? error.kind : "failed";
  return failed(kind, messageOf(error));
}

export function failed(kind: string, message: string): Facts {
  return { ok: false, error: { code: "KAI-RUN-TOOL-0002", kind, message } };
}
