// `runwire approve` and `runwire answer`: what a run waits for, answered from another terminal than the one it is
// watched in. Requests of children are found through their root.

import { type ApprovalAnswer, type Endpoint, follow, gateway, sseSource } from "@runwire/client";
import { is, isObject, type Transcript } from "@runwire/protocol";
import { type Command, Option } from "commander";
import { jsonIn } from "./json.js";
import { addServerOptions, reach, type ServerFlags } from "./server-flags.js";
import { oneLine } from "./watch/harmless.js";
import { inputIn, inputWords } from "./watch/words.js";

interface ApproveFlags extends ServerFlags {
  readonly decision: ApprovalAnswer["decision"];
  readonly reason?: string;
  readonly input?: string;
}

interface Waiting {
  /** The run that asks. */
  readonly run_id: string;
  readonly id: string;
  readonly tool: string;
  readonly about: string;
}

export function addAnswers(program: Command): void {
  const approve = program
    .command("approve")
    .description("approve or deny a plan, or a tool call, that waits for it")
    .argument("<run>", "its id")
    .argument("[approval]", "which request; needed only where several wait")
    .addOption(
      new Option(
        "--decision <decision>",
        "for this call, for its tool in this session, for its tool from now on, or not",
      )
        .choices(["once", "session", "always", "deny"])
        .default("once"),
    )
    .option("--reason <text>", "why, for the agent and those who read it later")
    .option("--input <json>", "run the tool with this input instead");
  addServerOptions(approve).addHelpText(
    "after",
    '\nExample:\n  runwire approve run_01HZ7K3M000000000000000000 --decision deny --reason "not on a Friday"',
  );
  approve.action((run_id: string, approval: string | undefined, flags: ApproveFlags) =>
    reach(flags, async (endpoint) => {
      const input = inputOf(flags.input);
      const isPlan = approval === undefined && (await waitsForPlan(endpoint, run_id));
      if (isPlan && input !== undefined)
        throw new Error("--input is for a tool call; this run waits for its plan");
      if (isPlan) await answerPlan(endpoint, run_id, flags);
      else
        await answerCall(endpoint, run_id, approval, {
          ...answerOf(flags),
          ...(input === undefined ? {} : { input }),
        });
    }),
  );

  const answer = program
    .command("answer")
    .description("answer a run's question")
    .argument("<run>", "its id")
    .argument("<clarify>", "which question, by its id")
    .argument("<text>", "the answer");
  addServerOptions(answer).addHelpText(
    "after",
    "\nExample:\n  runwire answer run_01HZ7K3M000000000000000000 clar_01HZ7K3M000000000000000001 uPlot",
  );
  answer.action((run_id: string, clarify_id: string, text: string, flags: ServerFlags) =>
    reach(flags, async (endpoint) => {
      const asks = await waitingIn(endpoint, run_id, "clarifications");
      const by = named(run_id, clarify_id, asks)?.run_id ?? run_id;
      await gateway(endpoint).answerClarification(by, clarify_id, text);
      process.stdout.write(`${clarify_id} is answered\n`);
    }),
  );
}

/** A plan in the making is waited for: who approves it at once means it. */
async function waitsForPlan(endpoint: Endpoint, run_id: string): Promise<boolean> {
  const server = gateway(endpoint);
  const { state, planning_gate } = await server.getRun(run_id);
  if (state === "awaiting_approval") return true;
  if (state !== "planning" || planning_gate !== "required") return false;
  // From here on: the log may tell of an earlier plan, too.
  const { pos, transcript } = await server.snapshot(run_id);
  if (transcript.state !== "planning") return transcript.state === "awaiting_approval";
  for await (const item of follow(sseSource({ ...endpoint, run_id }), { after: pos })) {
    if (item.kind !== "event" || item.event.child_id !== null || !is(item.event, "run.lifecycle")) continue;
    if (item.event.payload.state === "awaiting_approval") return true;
  }
  return false;
}

async function answerPlan(endpoint: Endpoint, run_id: string, flags: ApproveFlags): Promise<void> {
  const approved = flags.decision !== "deny";
  const { state } = await gateway(endpoint).approvePlan(run_id, {
    approved,
    ...(flags.reason === undefined ? {} : { reason: flags.reason }),
  });
  process.stdout.write(`the plan is ${approved ? "approved" : "rejected"}; ${run_id} is ${state}\n`);
}

async function answerCall(
  endpoint: Endpoint,
  run_id: string,
  approval: string | undefined,
  answer: ApprovalAnswer,
): Promise<void> {
  const asks = await waitingIn(endpoint, run_id, "approvals");
  // One that no longer waits goes to the server too, which says what became of it.
  const chosen =
    approval === undefined
      ? onlyOne(run_id, asks)
      : (named(run_id, approval, asks) ?? { run_id, id: approval, tool: approval, about: approval });
  await gateway(endpoint).answerApproval(chosen.run_id, chosen.id, answer);
  // What was asked for is not what runs.
  const about =
    answer.input === undefined ? chosen.about : `${chosen.tool} ${inputWords(answer.input)}`.trim();
  process.stdout.write(
    `${about}: ${answer.decision === "deny" ? "denied" : `allowed (${answer.decision})`}\n`,
  );
}

function onlyOne(run_id: string, asks: readonly Waiting[]): Waiting {
  const [first] = asks;
  if (first === undefined)
    throw new Error(`nothing waits for approval in ${run_id}; \`runwire tail ${run_id}\` shows it`);
  if (asks.length === 1) return first;
  const list = asks.map(({ id, about }) => `${id} (${about})`).join(", ");
  throw new Error(`${asks.length} requests wait in ${run_id}; name one: ${list}`);
}

/** An id is a run's own: where the run itself does not ask under it, two below it may. */
function named(run_id: string, given: string, asks: readonly Waiting[]): Waiting | undefined {
  const under = asks.filter(({ id }) => id === given);
  const own = under.find((ask) => ask.run_id === run_id);
  if (own !== undefined || under.length <= 1) return own ?? under[0];
  const list = under.map((ask) => `${ask.run_id} (${ask.about})`).join(", ");
  throw new Error(
    `${under.length} runs below ${run_id} ask under ${oneLine(given)}; name one instead: ${list}`,
  );
}

/** What waits in the run and in its descendants. */
async function waitingIn(
  endpoint: Endpoint,
  run_id: string,
  kind: "approvals" | "clarifications",
): Promise<readonly Waiting[]> {
  const { transcript } = await gateway(endpoint).snapshot(run_id);
  const all: readonly Transcript[] = [
    transcript,
    ...Object.values(transcript.children).map((child) => child.transcript),
  ];
  return all.flatMap((t) =>
    Object.entries(t[kind])
      .filter(([, { status }]) => status === "pending")
      .map(([id, { asked }]) => {
        const tool = oneLine(String(asked.tool ?? ""));
        return {
          run_id: t.run_id,
          id,
          tool,
          about: `${tool} ${inputWords(inputIn(asked) ?? asked.question)}`.trim(),
        };
      }),
  );
}

function answerOf({ decision, reason }: ApproveFlags): ApprovalAnswer {
  return { decision, ...(reason === undefined ? {} : { reason }) };
}

function inputOf(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  const input = jsonIn(text);
  if (isObject(input)) return input;
  throw new Error(
    `--input: ${oneLine(JSON.stringify(text))} is not possible; it takes JSON, as '{"query":"uPlot"}'`,
  );
}
