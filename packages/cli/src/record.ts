// `runwire record`: a run into a file, from its start to its end, as it happens. What is in the file are whole lines,
// however the recording ends.

import { closeSync, ftruncateSync, openSync, writeSync } from "node:fs";
import { gateway } from "@runwire/client";
import type { Command } from "commander";
import { exitCodes, leaving } from "./leaving.js";
import { addServerOptions, reach, type ServerFlags, sameServer } from "./server-flags.js";
import { oneLine } from "./watch/harmless.js";
import { followWire } from "./watch/wire.js";
import { counted } from "./wires/bad-lines.js";
import { dialectOf, dialectOption } from "./wires/dialect-flags.js";

interface RecordFlags extends ServerFlags {
  readonly output?: string;
  readonly dialect?: string;
  readonly full?: boolean;
}

export function addRecord(program: Command): void {
  const record = program
    .command("record")
    .description("write a run into a file, until it ends")
    .argument("<run>", "its id")
    .option("-o, --output <file>", "a file that is not there yet, or - for stdout (default <run>.jsonl)")
    .addOption(dialectOption("--dialect <name>", "how it is said (default runwire)"))
    .option("--full", "every token as it came");
  addServerOptions(record).addHelpText(
    "after",
    "\nExample:\n  runwire record run_01HZ7K3M000000000000000000 -o run.jsonl\n\nExit codes: 0 done, 1 error, 2 aborted, 130 left with Ctrl-C (the run goes on, and the file has whole lines).",
  );
  record.action((run_id: string, flags: RecordFlags) =>
    reach(flags, async (endpoint) => {
      // Following waits for a server for ever; one that is not there at the start is more likely a wrong address.
      await gateway(endpoint).getRun(run_id);
      const path = flags.output ?? `${run_id}.jsonl`;
      const isStdout = path === "-";
      const file = isStdout ? passing() : recording(path);
      const { signal } = leaving();
      const said = (): string =>
        `${counted(file.lineCount, "line")} ${isStdout ? "on stdout" : `in ${oneLine(path)}`}\n`;
      try {
        const options = { dialect: dialectOf(flags.dialect), full: flags.full ?? false, signal };
        const end = await followWire(endpoint, run_id, options, {
          lines: file.append,
          reset: file.empty,
        });
        process.stderr.write(`${run_id} is ${end ?? "not over"}; ${said()}`);
        process.exitCode = end === null ? 1 : exitCodes[end];
      } catch (error) {
        if (!signal.aborted) throw error;
        process.stderr.write(
          `Left; the run goes on. ${said()}  watch it: runwire tail ${run_id}${sameServer(flags)}\n`,
        );
      } finally {
        file.close();
      }
    }),
  );
}

interface Recording {
  readonly lineCount: number;
  append(lines: string): void;
  empty(): void;
  close(): void;
}

/** Written at once and in one piece: what interrupts the command comes before a line or after it. */
function recording(path: string): Recording {
  const file = opened(path);
  let bytes = 0;
  let lineCount = 0;
  return {
    get lineCount() {
      return lineCount;
    },
    append(lines) {
      const piece = Buffer.from(lines);
      try {
        for (let at = 0; at < piece.length; ) at += writeSync(file, piece, at, piece.length - at, bytes + at);
      } catch (error) {
        // A full disk takes half a line.
        ftruncateSync(file, bytes);
        throw error;
      }
      bytes += piece.length;
      lineCount += lines.split("\n").length - 1;
    },
    empty() {
      ftruncateSync(file, 0);
      bytes = 0;
      lineCount = 0;
    },
    close: () => closeSync(file),
  };
}

/** To stdout, which keeps what it was given. */
function passing(): Recording {
  let lineCount = 0;
  return {
    get lineCount() {
      return lineCount;
    },
    append(lines) {
      process.stdout.write(lines);
      lineCount += lines.split("\n").length - 1;
    },
    empty() {},
    close() {},
  };
}

function opened(path: string): number {
  try {
    return openSync(path, "wx");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw new Error(`${oneLine(path)}: it is there already; name another with -o`, { cause: error });
  }
}
