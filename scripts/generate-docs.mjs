// Writes what the documents tell of the program, from the program: `docs/errors.md` and `docs/cli.md` whole, and the tables of settings,
// scopes, metrics and names between their markers in other documents. With `--check` it writes nothing and fails if a file is
// not what it would write. Needs a build: it reads the compiled packages, and asks a server for its routes.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dialects, errorTable, eventTypes, loomNames, runtimeNames } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { makeProgram } from "../packages/cli/dist/program.js";
import { presetOf, settingGroups, settingRows, variable } from "../packages/cli/dist/setting-rows.js";

const { paths, metrics } = await told();
const commands = commandsPage(makeProgram());
const documents = {
  "docs/errors.md": () => errorsPage(Object.entries(errorTable)),
  "docs/cli.md": () => commands,
  "docs/operate.md": (text) =>
    between(between(text, "settings", settingsTables()), "metrics", metricsTable(metrics)),
  "docs/security.md": (text) => between(text, "scopes", scopesTable(paths)),
  "docs/dialects.md": (text) => between(text, "dialects", dialectsTable()),
  "PROTOCOL.md": (text) => between(text, "runtime", runtimeTable()),
};

for (const [file, make] of Object.entries(documents)) {
  const before = read(file);
  const text = make(before ?? "");
  if (!process.argv.includes("--check")) {
    writeFileSync(file, text);
    console.log(`wrote ${file}`);
  } else if (before !== text) {
    console.error(`${file} is not what the program says; run: npm run docs`);
    process.exitCode = 1;
  }
}

/** What a server says of itself. */
async function told() {
  const dataFolder = mkdtempSync(join(tmpdir(), "runwire-generate-"));
  const gateway = await startGateway({ port: 0, dataFolder, durability: "os" });
  try {
    const { paths } = await (await fetch(`${gateway.url}/openapi.json`)).json();
    return { paths, metrics: await (await fetch(`${gateway.url}/metrics`)).text() };
  } finally {
    await gateway.close();
    rmSync(dataFolder, { recursive: true });
  }
}

function between(text, name, table) {
  const [begin, end] = [`<!-- ${name}: generated -->`, `<!-- /${name} -->`];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`there is no place for the table of ${name}`);
  return `${text.slice(0, from + begin.length)}\n\n${table}\n\n${text.slice(to)}`;
}

function settingsTables() {
  const groups = settingGroups.map((group) => {
    const rows = Object.entries(settingRows)
      .filter(([, row]) => row.group === group)
      .map(([name, row]) => {
        const flag = row.secret ? "–" : `\`--${row.flag}\``;
        return `| ${flag} | \`${variable(row)}\` | ${cell(row.takes)} | ${cell(presetOf(name))} | ${cell(row.does)} |`;
      });
    return `**${group}**\n\n| flag | variable | takes | default | what it is |\n|---|---|---|---|---|\n${rows.join("\n")}`;
  });
  return groups.join("\n\n");
}

/** What each dialect makes of each event type; a dash is its declared loss. */
function dialectsTable() {
  const names = { loom: loomNames, runtime: new Map(runtimeNames().map(({ type, as }) => [type, as])) };
  const told = [...dialects.values()].filter(({ name }) => !name.includes("-"));
  const cell = ({ name, carries }, type) => {
    if (carries !== "all" && !carries.has(type)) return "–";
    const said = names[name]?.get(type) ?? [type];
    return said.map((one) => `\`${one}\``).join(", ");
  };
  return [
    `| event | ${told.map(({ name }) => `\`${name}\``).join(" | ")} |`,
    `|---|${told.map(() => "---|").join("")}`,
    ...Object.keys(eventTypes).map(
      (type) => `| \`${type}\` | ${told.map((dialect) => cell(dialect, type)).join(" | ")} |`,
    ),
  ].join("\n");
}

function runtimeTable() {
  const code = (list) => list.map((one) => `\`${one}\``).join(", ");
  const names = runtimeNames();
  const isPlain = ({ type, as, members }) => as.length === 1 && as[0].endsWith(type) && members.length === 0;
  const rows = names
    .filter((name) => !isPlain(name))
    .map(
      ({ type, as, members }) =>
        `| \`${type}\` | ${code(as)} | ${members.length === 0 ? "–" : code(members)} |`,
    );
  const plain = names.filter(isPlain);
  const same = plain.filter(({ type, as }) => as[0] === type).map(({ type }) => type);
  const own = plain.filter(({ type, as }) => as[0] !== type).map(({ type }) => type);
  return [
    `| event | message | members |\n|---|---|---|\n${rows.join("\n")}`,
    `The families keep their names, and so do ${code(same)}.`,
    `As \`x.runwire.<type>\` come ${code(own)}.`,
  ].join("\n\n");
}

function scopesTable(paths) {
  const order = ["anyone", "any", "read", "write", "control", "approve", "admin"];
  const rows = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { "x-runwire-scope": scope, security, summary }]) => {
      const ticket = security.some((way) => "ticket" in way) ? "yes" : "";
      const line = `| \`${scope}\` | \`${method.toUpperCase()} ${path}\` | ${ticket} | ${cell(summary)} |`;
      return { scope, line };
    }),
  );
  const sorted = order.flatMap((scope) => rows.filter((row) => row.scope === scope));
  if (sorted.length !== rows.length) throw new Error("a route has a scope that the table does not know");
  return `| scope | route | ticket | what it does |\n|---|---|---|---|\n${sorted.map(({ line }) => line).join("\n")}`;
}

function metricsTable(text) {
  const rows = [...text.matchAll(/^# HELP (runwire_\w+) (.*)\n# TYPE \w+ (\w+)/gm)].map(
    ([, name, help, type]) => `| \`${name}\` | ${type} | ${cell(help)} |`,
  );
  return `| metric | type | what it tells |\n|---|---|---|\n${rows.join("\n")}`;
}

function commandsPage(program) {
  const sections = program.commands.map((command) => commandSection(command, `runwire ${command.name()}`));
  return `<!-- Generated by scripts/generate-docs.mjs from the commands' own help. Edit packages/cli/src instead. -->

# The command line

In the checkout, \`npx runwire <command>\`. Whatever takes \`--url\` talks to a server over HTTP (but \`replay\` of a file):
the one that the flag or \`RUNWIRE_URL\` names, or else the one on this machine. Where the server wants a key, put it into
\`RUNWIRE_TOKEN\`; a flag would show it to everyone on the machine. What a run says, a model's text or a tool's
output, cannot move the cursor or change the terminal: escape sequences are left out. Colours and redrawing are for
terminals only; a pipe gets plain lines (\`NO_COLOR\` and \`TERM=dumb\` are respected).

\`\`\`text
${helpOf(program)}
\`\`\`

${sections.join("\n")}`;
}

function commandSection(command, name) {
  const nested = command.commands.map((inner) => commandSection(inner, `${name} ${inner.name()}`));
  const section = `## ${name}\n\n\`\`\`text\n${helpOf(command)}\n\`\`\`\n`;
  return [section, ...nested].join("\n");
}

/** As `--help` prints it in a terminal of 100 columns, with what is added behind. */
function helpOf(command) {
  let text = "";
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
    getOutHelpWidth: () => 100,
    getOutHasColors: () => false,
  });
  command.outputHelp();
  return text.trim();
}

function errorsPage(entries) {
  const areas = grouped(entries);
  const sections = [...areas].map(([area, rows]) => section(area, rows));
  return `<!-- Generated by scripts/generate-docs.mjs from packages/protocol/src/errors.ts. Edit that table instead. -->

# Errors

Every error has a code. Branch on the code, never on the text: the text may change, the code does not.
Before a stream has begun, an error is an HTTP status with this body:

\`\`\`json
{ "error": { "code": "KAI-RUN-MISSING-0001", "message": "run not found: run_01K…", "retry": false } }
\`\`\`

After a stream has begun, an error is how it ends: a WebSocket close code, or an end without a terminal event; the gRPC
status is what it will be there. A WebSocket that cannot be read is closed so at once; "–" means that none is closed because
of it, and that one which cannot be opened is refused with the status. "Retry" says whether the same request may succeed
later.

${sections.join("\n")}`;
}

function section(area, entries) {
  const rows = entries.map(
    ([code, { status, close, grpc, retry, title, help }]) =>
      `| \`${code}\` | ${cell(title)} | ${status} | ${close ?? "–"} | \`${grpc}\` | ${retry ? "yes" : "no"} | ${cell(help)} |`,
  );
  return `## ${area}

| code | what happened | HTTP | WebSocket | gRPC | retry | what to do |
|---|---|---|---|---|---|---|
${rows.join("\n")}
`;
}

function grouped(entries) {
  const areas = new Map();
  for (const entry of entries) {
    const area = areaOf(entry[0]);
    areas.set(area, [...(areas.get(area) ?? []), entry]);
  }
  return areas;
}

function areaOf(code) {
  return code.split("-").slice(0, 2).join("-");
}

function cell(text) {
  return text.replaceAll("|", "\\|");
}

function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // No file is as wrong as a stale one.
    return undefined;
  }
}
