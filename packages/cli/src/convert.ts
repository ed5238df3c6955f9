// `runwire convert` and `runwire validate`: files and pipes in any dialect, line by line, in constant memory.

import { logReader, logWriter, type Profile, profiles, validatorOf } from "@runwire/protocol";
import { type Command, Option } from "commander";
import { badLines, counted, nameOf, violationOf } from "./wires/bad-lines.js";
import { dialectOf, dialectOption } from "./wires/dialect-flags.js";
import { numberedLines, openInput } from "./wires/numbered-lines.js";
import { type Output, openOutput } from "./wires/output.js";
import { progress } from "./wires/progress.js";
import { readLine } from "./wires/recorded.js";

interface ConvertFlags {
  readonly from: string;
  readonly to: string;
  readonly output?: string;
}

interface ValidateFlags {
  readonly dialect: string;
  readonly profile?: Profile;
}

const codesHelp = "\nExit codes: 0 where every line was right, 1 where one was not.";

export function addConvert(program: Command): void {
  const convert = program
    .command("convert")
    .description("say what a file or a pipe holds in another dialect")
    .argument("[file]", "one message a line; stdin without it")
    .addOption(dialectOption("--from <dialect>", "what it is in").makeOptionMandatory())
    .addOption(dialectOption("--to <dialect>", "what it is to be in").makeOptionMandatory())
    .option("-o, --output <file>", "a file, named so once it is whole (default stdout)");
  convert.addHelpText(
    "after",
    `\nExamples:\n  runwire convert --from loom --to runwire run.loom.jsonl -o run.jsonl\n  my-agent --json | runwire convert --from loom --to koder\n${codesHelp}`,
  );
  convert.action((file: string | undefined, flags: ConvertFlags) => convertFile(file, flags));
}

export function addValidate(program: Command): void {
  const validate = program
    .command("validate")
    .description("check that a file or a pipe speaks a dialect as it should")
    .argument("[file]", "one message a line; stdin without it")
    .addOption(dialectOption("--dialect <dialect>", "what it is in").makeOptionMandatory())
    .addOption(
      new Option("--profile <name>", "more rules, where the dialect has them").choices([...profiles]),
    );
  validate.addHelpText("after", `\nExample:\n  runwire validate --dialect loom run.loom.jsonl\n${codesHelp}`);
  validate.action((file: string | undefined, flags: ValidateFlags) => validateFile(file, flags));
}

async function convertFile(file: string | undefined, flags: ConvertFlags): Promise<void> {
  const shown = progress(file);
  const bad = badLines(file, process.stderr, shown.clear);
  const reader = logReader(dialectOf(flags.from));
  const writer = logWriter(dialectOf(flags.to));
  let lineCount = 0;

  let output: Output | undefined;
  // Before there is a file: an end at any moment leaves none behind.
  for (const [signal, code] of [["SIGINT", 130] as const, ["SIGTERM", 143] as const]) {
    process.once(signal, () => {
      output?.discard();
      process.exit(code);
    });
  }
  output = openOutput(flags.output);
  try {
    for await (const { lines, bytes, count } of numberedLines(openInput(file))) {
      let said = "";
      for (const line of lines) {
        for (const e of readLine(reader, line, bad)) {
          for (const { data } of writer.say(e)) said += `${data}\n`;
        }
      }
      lineCount = count;
      await output.write(said);
      shown.at(bytes);
    }
    output.finish();
  } catch (error) {
    output.discard();
    throw readable(error, file);
  } finally {
    shown.clear();
  }
  process.stderr.write(
    `${nameOf(file)}: ${counted(lineCount, "line")}, ${bad.count.toLocaleString("en")} bad, ${counted(reader.runs, "run")}\n`,
  );
  if (bad.count > 0) process.exitCode = 1;
}

async function validateFile(file: string | undefined, flags: ValidateFlags): Promise<void> {
  const shown = progress(file);
  const bad = badLines(file, process.stdout, shown.clear);
  const validator = validatorOf(dialectOf(flags.dialect), flags.profile);
  let lineCount = 0;
  process.stdout.on("error", () => process.exit(1));
  try {
    for await (const { lines, bytes, count } of numberedLines(openInput(file))) {
      for (const line of lines) {
        const found = "error" in line ? [violationOf(line.error)] : validator.check(line.text);
        for (const wrong of found) bad.tell(line.number, wrong);
      }
      lineCount = count;
      shown.at(bytes);
    }
  } catch (error) {
    throw readable(error, file);
  } finally {
    shown.clear();
  }
  // What is missing at the end is told of the last line.
  for (const wrong of validator.end()) bad.tell(Math.max(1, lineCount), wrong);
  process.stderr.write(
    `${nameOf(file)}: ${counted(lineCount, "line")}, ${bad.count.toLocaleString("en")} bad\n`,
  );
  if (bad.count > 0) process.exitCode = 1;
}

/** A file that cannot be read, in words. */
export function readable(error: unknown, file: string | undefined): unknown {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const why = { ENOENT: "there is no such file", EISDIR: "it is a folder", EACCES: "it may not be read" }[
    String(code)
  ];
  return why === undefined ? error : new Error(`${nameOf(file)}: ${why}`, { cause: error });
}
