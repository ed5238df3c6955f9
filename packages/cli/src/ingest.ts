// `runwire ingest`: what an agent writes to its stdout becomes a run that people can watch, answer and stop.

import { randomUUID } from "node:crypto";
import { type Endpoint, gateway, type NewRun, type RunRecord, systemClock } from "@runwire/client";
import {
  broughtBy,
  type Dialect,
  type Event,
  type Facts,
  is,
  isFinal,
  isId,
  isObject,
  logReader,
  messageOf,
  RunwireError,
} from "@runwire/protocol";
import type { Command } from "commander";
import { created } from "./ingest/created.js";
import type { Begun } from "./ingest/fitting.js";
import { type Written, writeRun } from "./ingest/written.js";
import { exitCodes } from "./leaving.js";
import { addServerOptions, reach, type ServerFlags, sameServer } from "./server-flags.js";
import { oneLine } from "./watch/harmless.js";
import { type BadLines, violationOf } from "./wires/bad-lines.js";
import { dialectOf, dialectOption } from "./wires/dialect-flags.js";
import { openInput, readLine } from "./wires/input.js";

interface IngestFlags extends ServerFlags {
  readonly dialect: string;
  readonly run?: string;
  readonly agent?: string;
  readonly session?: string;
  readonly answers?: boolean;
  readonly json?: boolean;
}

export function addIngest(program: Command): void {
  const ingest = program
    .command("ingest")
    .description("make runs of what an agent writes, as it writes it")
    .addOption(dialectOption("--dialect <name>", "what it writes, one message a line").makeOptionMandatory())
    .option("--run <id>", "into this run, which was created for it; further ones are created")
    .option("--agent <name>", "who writes it")
    .option("--session <id>", "the session it belongs to")
    .option("--answers", "write what people answer to stdout, in the same dialect")
    .option("--json", "the ids of the runs on stdout, one object a line");
  addServerOptions(ingest).addHelpText(
    "after",
    "\nExamples:\n  my-agent --json | runwire ingest --dialect loom\n  mkfifo answers; my-agent --json < answers | runwire ingest --dialect loom --answers > answers\n\nExit codes: 0 done, 1 error (also where the input ends before the run), 2 aborted.",
  );
  ingest.action((flags: IngestFlags) =>
    reach(flags, async (endpoint) => {
      if (flags.answers && flags.json)
        throw new Error("--answers and --json both write to stdout; choose one");
      for (const [name, id] of Object.entries({ agent: flags.agent, session: flags.session })) {
        if (id !== undefined && !isId(id))
          throw new Error(
            `--${name}: ${JSON.stringify(id)} is not possible; it takes letters, digits and _.:-`,
          );
      }
      askTwice();
      await ingestLines(endpoint, flags);
    }),
  );
}

/** Ctrl-C goes to the whole pipeline: the agent may still have something to say, and its end is ours. */
function askTwice(): void {
  process.once("SIGINT", () => {
    process.stderr.write("runwire: waiting for the input to end; Ctrl-C again leaves the run to its lease\n");
    process.once("SIGINT", () => process.exit(130));
  });
}

async function ingestLines(endpoint: Endpoint, flags: IngestFlags): Promise<void> {
  const dialect = dialectOf(flags.dialect);
  const reader = logReader(dialect);
  const input = openInput(undefined);
  const stopped = new AbortController();
  const runs = openRuns(endpoint, dialect, flags, () => {
    stopped.abort();
    // Its writer learns that nobody reads any more.
    process.stdin.destroy();
  });
  let failure: unknown;
  try {
    for await (const lines of input.pieces()) {
      for (const line of lines) {
        for (const e of readLine(reader, line, input.bad)) {
          const run = stopped.signal.aborted ? undefined : await runs.runOf(e);
          if (run !== undefined) await stored(run.take(e), line.number, input.bad);
        }
      }
    }
    await runs.beginHeld();
  } catch (error) {
    if (!stopped.signal.aborted) failure = error;
  }
  // A run that could not be begun takes nothing from those that were.
  await runs.finish(
    stopped.signal.aborted || failure !== undefined
      ? "another run was stopped"
      : "the input ended before the run did",
  );
  if (failure !== undefined) throw failure;
  if (input.bad.count > 0 || input.lineCount === 0) process.stderr.write(`${input.summary}\n`);
}

async function stored(taken: Promise<void>, line: number, bad: BadLines): Promise<void> {
  try {
    await taken;
  } catch (error) {
    bad.tell(line, violationOf(error));
  }
}

interface Runs {
  /** The run that an event goes to, begun where it is the first; none yet where more must be known of it. */
  runOf(e: Event): Promise<Written | undefined>;
  /** Begins those of which no more is said than their first state. */
  beginHeld(): Promise<void>;
  /** Ends those that are open and sets the exit code by how they ended. */
  finish(reason: string): Promise<void>;
}

function openRuns(endpoint: Endpoint, dialect: Dialect, flags: IngestFlags, onStopped: () => void): Runs {
  /** By the names that the wire has for them. */
  const runs = new Map<string, Written>();
  /** First states of runs of which nothing else was said yet. */
  const held = new Map<string, Event>();
  const isOneByOne = dialect.decoder().runs !== undefined;
  const saysAsked = dialect.carries === "all" || dialect.carries.has("turn.submitted");
  const ends: Promise<void>[] = [];
  let exitCode = 0;

  async function begin(e: Event, opening?: Event): Promise<Written> {
    if (isOneByOne) cutOff("the input went on with another run");
    const isGiven = runs.size === 0 && flags.run !== undefined;
    const asked = newRunOf(e, opening, flags);
    const run_id = isGiven && flags.run !== undefined ? flags.run : await create(asked);
    const { state, ...there } = isGiven ? begunIn(await gateway(endpoint).getRun(run_id)) : justBegun;
    if (isFinal(state)) throw new RunwireError("KAI-RUN-ENDED-0001", `${run_id} is ${state}`);
    const failed = (error: unknown): void => {
      const why = messageOf(error);
      process.stderr.write(`runwire: ${run_id}: ${oneLine(why)}\n`);
      exitCode = Math.max(exitCode, 1);
      onStopped();
    };
    const run = writeRun(endpoint, run_id, {
      dialect,
      begun: {
        ...there,
        isAsked: !isGiven && is(e, "turn.submitted") && asked.messages !== undefined,
        state,
      },
      answers: flags.answers ? (lines) => void process.stdout.write(lines) : undefined,
      onFailure: failed,
      onLeftOut: (child_id, { message }) =>
        process.stderr.write(`runwire: ${run_id}: not all of ${child_id} is stored: ${oneLine(message)}\n`),
    });
    if (flags.json) process.stdout.write(`${JSON.stringify({ run_id })}\n`);
    process.stderr.write(`${run_id} is ${state}; watch it: runwire tail ${run_id}${sameServer(flags)}\n`);
    const over = run.end.then(({ state, isOurs }) => {
      process.stderr.write(`${run_id} is ${state}\n`);
      exitCode = Math.max(exitCode, exitCodes[state]);
      if (!isOurs) onStopped();
    });
    ends.push(over.catch(failed));
    runs.set(e.run_id, run);
    return run;
  }

  async function create(asked: NewRun): Promise<string> {
    const key = randomUUID();
    const isHolding = (): boolean => [...runs.values()].some(({ isOpen }) => isOpen);
    const { run_id } = await created(() => gateway(endpoint).createRun(asked, key), {
      // A server that is not there at the start is more likely a wrong address; later it is one that comes back.
      isPatient: runs.size > 0,
      isHolding,
      clock: systemClock,
    });
    return run_id;
  }

  function cutOff(reason: string): void {
    for (const run of runs.values()) run.cutOff(reason);
  }

  return {
    async runOf(e) {
      const run = runs.get(e.run_id);
      if (run !== undefined) return run;
      if (saysAsked && !held.has(e.run_id) && isFirstState(e)) {
        held.set(e.run_id, e);
        return undefined;
      }
      const opening = held.get(e.run_id);
      held.delete(e.run_id);
      return begin(e, opening);
    },
    async beginHeld() {
      for (const e of held.values()) await begin(e);
    },
    async finish(reason) {
      cutOff(reason);
      await Promise.all(ends);
      process.exitCode = exitCode;
    },
  };
}

const justBegun = { state: "running", isGated: false, pos: 0 } as const;

function begunIn({ state, planning_gate, counts }: RunRecord): Omit<Begun, "isAsked"> {
  return { state, isGated: planning_gate === "required", pos: counts.default_events };
}

function isFirstState(e: Event): boolean {
  return e.child_id === null && is(e, "run.lifecycle") && !isFinal(e.payload.state);
}

/** What the wire says the run was asked, in the first of its events that is more than a state, and where. */
function newRunOf(e: Event, opening: Event | undefined, flags: IngestFlags): NewRun {
  const { agent: named, session_id: session, envelope } = e.payload as Facts;
  const said = isObject(envelope) ? envelope.session_id : undefined;
  const agent = [flags.agent, named].find(isId);
  const session_id = [flags.session, e.scope?.session_id, session, said, opening?.scope?.session_id].find(
    isId,
  );
  return {
    producer: "external",
    ...askedBy(e),
    ...(agent === undefined ? {} : { agent }),
    ...(session_id === undefined ? {} : { session_id }),
  };
}

/** Nothing where the server could not write it as it was said; then the wire's own words are stored. */
function askedBy(e: Event): Pick<NewRun, "messages"> {
  if (!is(e, "turn.started") && !is(e, "turn.submitted")) return {};
  const { messages } = e.payload as Facts;
  const brought = Array.isArray(messages) && !messages.every(isObject) ? [] : broughtBy(e.payload as Facts);
  return brought.length === 0 ? {} : { messages: brought };
}
