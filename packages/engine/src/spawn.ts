// Children: a call that is a run of its own. After a crash the call finds its child by its id in the log.

import { is, isFinal, isNamedBy } from "@runwire/protocol";
import type { CallWork } from "./call-work.js";
import type { Loop } from "./loop.js";
import { liveChildrenOf } from "./strategies/got.js";
import { plainStrategy } from "./strategies/strategy.js";
import { type Tool, ToolFailure } from "./tool.js";
import { checkedTool } from "./tools/input.js";
import { advance, firstWork, type Work } from "./work.js";

interface Errand {
  readonly prompt: string;
  readonly tools_allowed?: readonly string[];
}

export const spawnTool: Tool = checkedTool<Errand>({
  name: "spawn",
  description: "Give a part of the work to a helper, who works by itself and reports back.",
  effect: "read-only",
  input_schema: {
    type: "object",
    required: ["prompt"],
    additionalProperties: false,
    properties: {
      prompt: { type: "string", minLength: 1 },
      tools_allowed: { type: "array", items: { type: "string" } },
    },
  },
  run() {
    throw new ToolFailure("failed", "spawn is run by the agent itself");
  },
});

export async function waitForChild(loop: Loop, call: CallWork, signal: AbortSignal): Promise<Report> {
  spawnTool.check?.(call.input);
  const { prompt, tools_allowed } = call.input as Errand;
  const { call_id } = call;
  const known = loop.log.work.calls.find((one) => one.call_id === call_id)?.child_id ?? null;
  // A child that is at work has its tools, also while the server of one is away.
  if (known === null) checkErrand(loop, call.input as Errand);
  const asked = { prompt, call_id, ...(tools_allowed === undefined ? {} : { tools_allowed }) };
  return reportOf(loop, asked, known, signal);
}

function checkErrand({ box }: Loop, { prompt, tools_allowed = [] }: Errand): void {
  if (prompt.trim() === "") throw new ToolFailure("invalid-input", "The prompt says nothing.");
  const unknown = tools_allowed.find((pattern) => !box.tools.some(({ name }) => isNamedBy(pattern, name)));
  if (unknown !== undefined)
    throw new ToolFailure("invalid-input", `This run has no tool ${JSON.stringify(unknown)} to give.`);
}

interface Report {
  readonly child_id: string;
  readonly text: string;
}

/** What the child has to say in the end; it is spawned where it is not known yet. */
export async function reportOf(
  loop: Loop,
  asked: Errand & { readonly call_id: string },
  known: string | null,
  signal: AbortSignal,
): Promise<Report> {
  const { host, run, take, log } = loop;
  // A child goes about its part by itself: a search inside of a search would have no bounds.
  const agent = typeof log.work.asked.agent === "string" ? { agent: plainStrategy } : {};
  signal.throwIfAborted();
  const child_id = known ?? (await host.writer.spawn(run, { ...asked, ...agent })).child_id;
  // Whoever redirects the run next has to know of it.
  await log.until((work) => isKnown(work, child_id));
  const child = { tenant: run.tenant, run_id: child_id };
  take(child);
  let work = firstWork;
  for await (const events of host.follow(child, "full", 0, signal)) {
    for (const event of events) {
      work = advance(work, event);
      if (event.child_id !== null || !is(event, "run.lifecycle") || !isFinal(event.payload.state)) continue;
      const { state, reason } = event.payload;
      if (state !== "done") throw new ToolFailure(`child-${state}`, reason ?? `the child ended as ${state}`);
      const text = work.messages.findLast((message) => message.role === "assistant")?.content ?? "";
      return { child_id, text };
    }
  }
  throw new ToolFailure("aborted", "the child was not waited for");
}

function isKnown({ calls, strategy }: Work, of: string): boolean {
  return calls.some(({ child_id }) => child_id === of) || liveChildrenOf(strategy).includes(of);
}
