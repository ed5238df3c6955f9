// `runwire convert` and `runwire validate`: files and pipes in any dialect, line by line, in constant memory.

import { logReader, logWriter, type Profile, profiles, validatorOf } from "@runwire/protocol";
import { type Command, Option } from "commander";
import { counted, violationOf } from "./wires/bad-lines.js";
import { dialectOf, dialectOption } from "./wires/dialect-flags.js";
import { type Input, openInput, readLine } from "./wires/input.js";
import { type Output, openOutput } from "./wires/output.js";
import { progress } from "./wires/progress.js";

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
  const input = openInput(file, { shown: progress(file) });
  const reader = logReader(dialectOf(flags.from));
  const writer = logWriter(dialectOf(flags.to));

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
    for await (const lines of input.pieces()) {
      let said = "";
      for (const line of lines) {
        for (const e of readLine(reader, line, input.bad)) {
          for (const { data } of writer.say(e)) said += `${data}\n`;
        }
      }
      await output.write(said);
    }
    output.finish();
  } catch (error) {
    output.discard();
    throw error;
  }
  conclude(input, `, ${counted(reader.runs, "run")}`);
}

async function validateFile(file: string | undefined, flags: ValidateFlags): Promise<void> {
  const input = openInput(file, { tell: process.stdout, shown: progress(file) });
  const validator = validatorOf(dialectOf(flags.dialect), flags.profile);
  process.stdout.on("error", () => process.exit(1));
  for await (const lines of input.pieces()) {
    for (const line of lines) {
      const found = "error" in line ? [violationOf(line.error)] : validator.check(line.text);
      for (const wrong of found) input.bad.tell(line.number, wrong);
    }
  }
  // What is missing at the end is told of the last line.
  for (const wrong of validator.end()) input.bad.tell(Math.max(1, input.lineCount), wrong);
  conclude(input);
}

function conclude({ summary, bad }: Input, more = ""): void {
  process.stderr.write(`${summary}${more}\n`);
  if (bad.count > 0) process.exitCode = 1;
}
