// `runwire replay`: a run that is stored, or in a file, as it went.

import { existsSync } from "node:fs";
import { systemClock } from "@runwire/client";
import { type Event, isRunId, logWriter } from "@runwire/protocol";
import type { Command } from "commander";
import { leaving } from "./leaving.js";
import { addServerOptions, reach, type ServerFlags } from "./server-flags.js";
import { addShowOptions, checkShowFlags, type ShowFlags } from "./watch/flags.js";
import { play, type Shown, shownFrom } from "./watch/play.js";
import { ownScreen } from "./watch/screen.js";
import { whenSuspended } from "./watch/suspend.js";
import { durationWords } from "./watch/words.js";
import { dialectOf, dialectOption } from "./wires/dialect-flags.js";
import { openInput } from "./wires/input.js";
import { fileEvents, storedEvents } from "./wires/recorded.js";

interface ReplayFlags extends ServerFlags, ShowFlags {
  readonly speed: string;
  readonly fromStep?: string;
  readonly from?: string;
}

export function addReplay(program: Command): void {
  const replay = program
    .command("replay")
    .description("show a stored run, or a file in any dialect, as it went")
    .argument("<run>", "a run's id, a file, or - for stdin")
    .option("--speed <times>", "how much faster, as 2x, or max for no waiting", "1x")
    .option("--from-step <number>", "begin with this step")
    .addOption(dialectOption("--from <dialect>", "what the file is in (default: what it looks like)"));
  addShowOptions(replay, "thinking, inputs and outputs whole; of a stored run every token");
  addServerOptions(replay).addHelpText(
    "after",
    "\nExamples:\n  runwire replay run_01HZ7K3M000000000000000000 --speed 2x\n  runwire replay run.loom.jsonl --speed max --json --dialect koder\n\nGaps of more than a few seconds are shortened, and said.",
  );
  replay.action(async (run: string, flags: ReplayFlags) => {
    checkShowFlags(flags);
    const [speed, step] = [speedOf(flags.speed), stepOf(flags.fromStep)];
    const show = (events: AsyncIterable<Event>): Promise<void> => showRecorded(events, speed, step, flags);
    // A server has no run of any other name, so that a file was meant.
    if (run === "-" || existsSync(run) || !isRunId(run)) {
      const dialect = flags.from === undefined ? undefined : dialectOf(flags.from);
      const input = openInput(run);
      await show(fileEvents(input, dialect));
      if (input.bad.count > 0) process.exitCode = 1;
    } else await reach(flags, (endpoint) => show(storedEvents(endpoint, run, flags.full ?? false)));
  });
}

async function showRecorded(
  events: AsyncIterable<Event>,
  speed: number,
  step: number,
  { json, dialect, full = false, children = "show" }: ReplayFlags,
): Promise<void> {
  const { signal } = leaving();
  const clock = systemClock;
  const shown = shownFrom(events, step, { speed, clock, signal });
  const { screen, live } = ownScreen();
  const stopSuspending = live && !json ? whenSuspended({ give: screen.clear }) : () => {};
  try {
    if (json) await sayRecorded(shown, dialect);
    else await play(shown, { screen, clock, signal, speed, live, full, children });
  } catch (error) {
    // Left in the middle: the exit code says so.
    if (!signal.aborted) throw error;
  } finally {
    stopSuspending();
  }
}

async function sayRecorded(shown: AsyncIterable<Shown>, dialect: string | undefined): Promise<void> {
  const writer = logWriter(dialectOf(dialect));
  for await (const { event, laterMs, isPast } of shown) {
    const messages = writer.say(event);
    if (isPast) continue;
    if (laterMs !== null) process.stderr.write(`${durationWords(laterMs)} later\n`);
    for (const { data } of messages) process.stdout.write(`${data}\n`);
  }
}

function speedOf(text: string): number {
  if (text === "max") return Number.POSITIVE_INFINITY;
  const speed = /^[0-9]{1,6}(?:\.[0-9]{1,6})?x?$/.test(text) ? Number.parseFloat(text) : 0;
  if (speed > 0) return speed;
  throw new Error(`--speed: ${JSON.stringify(text)} is not possible; it takes 2x, 0.5x or max`);
}

function stepOf(text: string | undefined): number {
  if (text === undefined || /^[0-9]{1,9}$/.test(text)) return Number(text ?? 0);
  throw new Error(`--from-step: ${JSON.stringify(text)} is not possible; it takes a number from 0`);
}
