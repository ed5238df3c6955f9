// `runwire doctor`: says what is right, doubtful and wrong with an installation, and what to do about it.

import { messageOf } from "@runwire/protocol";
import { systemClock } from "@runwire/server/operate";
import type { Command } from "commander";
import { addSettingOptions } from "../setting-options.js";
import { type Paint, paintFor, printable } from "../terminal.js";
import { access } from "./access.js";
import { database } from "./database.js";
import { type Check, type Facts, type Finding, wrong } from "./finding.js";
import { folder } from "./folder.js";
import { hooks } from "./hooks.js";
import { diskSpace, nodeVersion, openFiles } from "./machine.js";
import { mcp } from "./mcp.js";
import { models } from "./models.js";
import { server } from "./server.js";
import { settingsWithFindings } from "./settings.js";
import { tls } from "./tls.js";

const checks: { readonly [about: string]: Check } = {
  node: nodeVersion,
  "open files": openFiles,
  "data folder": folder,
  disk: diskSpace,
  database,
  server,
  access,
  tls,
  models,
  mcp,
  hooks,
};

const marks = {
  right: ["✓", "green"],
  doubtful: ["!", "yellow"],
  wrong: ["✗", "red"],
} as const;

export function addDoctor(program: Command): void {
  const doctor = program.command("doctor").description("check the installation, and say what to mend");
  addSettingOptions(doctor);
  doctor
    .option("--json", "as JSON")
    .addHelpText(
      "after",
      "\nRun it as the user that runs the server, with the same settings. It changes nothing.\n" +
        "It exits with 1 if anything is wrong.",
    )
    .action(async ({ json, ...flags }: { readonly json?: boolean; readonly [flag: string]: unknown }) => {
      const { settings, findings: first } = settingsWithFindings(flags, process.env);
      const findings = [
        ...first,
        ...(await examine({ settings, env: process.env, nowMs: systemClock.now() })),
      ];
      const isWell = findings.every(({ result }) => result !== "wrong");
      const paint = paintFor(process.stdout, process.env);
      const text = json ? JSON.stringify({ ok: isWell, findings }, null, 2) : write(findings, paint);
      process.stdout.write(`${text}\n`);
      if (!isWell) process.exitCode = 1;
    });
}

export async function examine(facts: Facts, by = checks): Promise<readonly Finding[]> {
  const all: Finding[] = [];
  // One after the other: the order is the one in which a person would mend things.
  for (const [about, check] of Object.entries(by)) {
    try {
      all.push(...(await check(facts)));
    } catch (error) {
      // One check that cannot be made must not hide what the others say.
      all.push(wrong(about, `this could not be checked (${messageOf(error)})`, "mend what the message says"));
    }
  }
  return all;
}

export function write(findings: readonly Finding[], paint: Paint): string {
  const width = Math.max(...findings.map(({ about }) => about.length));
  const lines = findings.flatMap(({ result, about, says, todo }) => {
    const [mark, colour] = marks[result];
    const line = `${paint(colour, mark)} ${about.padEnd(width)}  ${printable(says)}`;
    return todo === undefined ? [line] : [line, `${" ".repeat(width + 4)}→ ${printable(todo)}`];
  });
  return [...lines, "", summary(findings)].join("\n");
}

function summary(findings: readonly Finding[]): string {
  const count = (result: Finding["result"]): number => findings.filter((one) => one.result === result).length;
  if (count("wrong") + count("doubtful") === 0) return "All is well.";
  return `${count("wrong")} wrong, ${count("doubtful")} doubtful, ${count("right")} right.`;
}
