// Holds every package to the rooms of the design: who may import whom, and that `protocol` is pure.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";

// package → the workspace packages its files may import, and those its test files may import besides.
// `node` lists the folders whose files may import Node's own modules; tests always may.
const rooms = {
  protocol: { imports: [], tests: [], node: [] },
  server: { imports: ["protocol"], tests: [], node: ["src"] },
  engine: { imports: ["protocol", "server"], tests: [], node: ["src"] },
  client: { imports: ["protocol"], tests: [], node: ["src/node"] },
  conformance: { imports: ["protocol", "client"], tests: ["server", "engine"], node: ["src"] },
  cli: { imports: ["protocol", "server", "engine", "client"], tests: ["conformance"], node: ["src"] },
};

const impure =
  /\bDate\.now\b|\bnew Date\b|\bMath\.random\b|\bperformance\.|\bset(?:Timeout|Interval|Immediate)\b|\bcrypto\./g;
const specifier =
  /(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*|\bnew URL\(\s*(?=[^)]*import\.meta))(["'])([^"'\n]+)\1/g;

const problems = [];
let fileCount = 0;

for (const name of readdirSync("packages")) {
  const room = rooms[name];
  if (room === undefined) {
    problems.push(`packages/${name}: has no row in scripts/check-imports.mjs`);
    continue;
  }
  for (const file of sourceFiles(join("packages", name, "src"))) {
    fileCount += 1;
    checkFile(name, room, file);
  }
}

for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
console.log(`Checked imports of ${fileCount} files.`);

function sourceFiles(folder) {
  return readdirSync(folder, { recursive: true })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => join(folder, file));
}

function checkFile(name, room, file) {
  const code = withoutComments(readFileSync(file, "utf8"));
  const isTest = /\.test\.ts$/.test(file);
  const report = (index, text) =>
    problems.push(`${file}:${code.slice(0, index).split("\n").length}: ${text}`);

  for (const match of code.matchAll(specifier)) {
    const refusal = refuse(name, room, file, isTest, match[2]);
    if (refusal !== undefined) report(match.index, refusal);
  }
  if (name !== "protocol" || isTest) return;
  for (const match of code.matchAll(impure)) {
    report(match.index, `protocol is pure: ${match[0]} must be an argument`);
  }
}

function refuse(name, room, file, isTest, target) {
  if (target.startsWith(".")) {
    const inside = relative(join("packages", name), join(dirname(file), target));
    if (inside.startsWith("..") && !isTest) return `${target} leaves the package`;
    if (/\.tsx?$/.test(target)) return `${target}: relative imports end in .js`;
    return undefined;
  }
  if (isTest && !isWorkspace(target)) return undefined;
  if (target.startsWith("node:")) {
    const allowed = room.node.some((folder) => file.startsWith(join("packages", name, folder) + sep));
    return allowed ? undefined : `${name} may not import ${target}`;
  }
  if (isWorkspace(target)) {
    const to = target === "runwire" ? "cli" : target.split("/")[1];
    const allowed = to === name || room.imports.includes(to) || (isTest && room.tests.includes(to));
    return allowed ? undefined : `${name} may not import ${target}`;
  }
  return name === "protocol" ? `protocol imports nothing, not even ${target}` : undefined;
}

function isWorkspace(target) {
  return target === "runwire" || target.startsWith("@runwire/");
}

// Blanks comments and keeps strings and line breaks, so that positions stay true.
function withoutComments(code) {
  const token = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\[\s\S]|[^`\\])*`/g;
  return code.replace(token, (text) => (text.startsWith("/") ? text.replace(/[^\n]/g, " ") : text));
}
