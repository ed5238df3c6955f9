// The documents are tested like code: TypeScript in them compiles, JSON parses, links lead somewhere, and their
// commands work against a real server.

import { execFile } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ServerProcess, startServer } from "./gateway/server-process.js";
import { loopback } from "./loopback.js";
import { anchorsOf, type Fence, fencesOf, linksOf } from "./markdown.js";
import { shellScript, startsServers } from "./shell-script.js";
import { tool } from "./tools.js";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../../", import.meta.url));
const scriptMsMax = 100_000;

const documents = [
  ...[
    "README.md",
    "PROTOCOL.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "clients/go/README.md",
  ].filter((name) => existsSync(join(root, name))),
  ...(existsSync(join(root, "docs")) ? readdirSync(join(root, "docs")) : [])
    .filter((name) => name.endsWith(".md"))
    .map((name) => join("docs", name)),
].map((name) => ({ name, text: readFileSync(join(root, name), "utf8") }));

const fences = documents.flatMap(({ name, text }) => fencesOf(text).map((fence) => ({ name, ...fence })));

function inLanguage(...languages: readonly string[]): readonly (Fence & { readonly name: string })[] {
  return fences.filter(({ language }) => languages.includes(language));
}

describe("documents", () => {
  it("have TypeScript that compiles against the built packages", () => compiles(inLanguage("ts", "tsx")));

  it("have JSON that parses", () => {
    for (const { name, line, text } of inLanguage("json")) {
      expect(() => JSON.parse(text), `${name}:${line}`).not.toThrow();
    }
    for (const { name, line, text } of inLanguage("jsonl", "ndjson")) {
      text.split("\n").forEach((json, i) => {
        expect(() => JSON.parse(json), `${name}:${line + i}`).not.toThrow();
      });
    }
  });

  it("name the language of every block, so that none goes unchecked by accident", () => {
    expect(inLanguage("").map(({ name, line }) => `${name}:${line}`)).toEqual([]);
  });

  it.each(documents)("$name links to what is there", ({ name, text }) => {
    const dead = linksOf(text).filter((target) => {
      if (/^[a-z][a-z0-9+.-]*:/i.test(target)) return false;
      const [path = "", fragment] = target.split("#");
      const file = path === "" ? name : relative(root, join(root, dirname(name), decodeURIComponent(path)));
      if (!existsSync(join(root, file))) return true;
      if (fragment === undefined || !file.endsWith(".md")) return false;
      return !anchorsOf(readFileSync(join(root, file), "utf8")).has(fragment);
    });
    expect(dead).toEqual([]);
  });

  it("tell errors, commands, settings, scopes and metrics as the program has them", async () => {
    await run(process.execPath, ["scripts/generate-docs.mjs", "--check"], { cwd: root });
  });
});

const withCommands = documents.filter(({ name }) => inLanguage("sh").some((fence) => fence.name === name));

if (withCommands.length > 0) {
  describe("the commands of", () => {
    const folder = mkdtempSync(join(tmpdir(), "runwire-docs-"));
    let server: ServerProcess;

    beforeAll(async () => {
      server = await startServer(
        [process.execPath, join(root, "packages/cli/bin/runwire.js"), "serve"],
        join(folder, "data"),
      );
    });

    afterAll(async () => {
      await server?.kill("SIGTERM");
      rmSync(folder, { recursive: true, force: true });
    });

    it.for(withCommands)("$name work in their order", async ({ name }, context) => {
      const blocks = inLanguage("sh").filter((fence) => fence.name === name);
      const script = blocks.map(({ text }) => text).join("\n");
      for (const name of ["openssl", "sqlite3", "nats-server"] as const) {
        if (!script.includes(`${name} `)) continue;
        const { program, whyNot } = tool(name);
        // Scripts find it on the path alone.
        if (whyNot !== undefined || program !== name)
          return context.skip(whyNot ?? `${name} is not on the path`);
      }
      if (!startsServers(blocks)) return runScript(blocks, server.url);
      const own = join(folder, "own", name);
      mkdirSync(own, { recursive: true });
      return runScript(blocks, `http://127.0.0.1:${await freePort()}`, own);
    });
  });
}

// The tools above are trusted with the documents, so they are shown to notice what is wrong.
describe("the documents' tests", () => {
  it("notice a block that does not compile, by the document's own line", async () => {
    const wrong = {
      name: "README.md",
      language: "ts",
      line: 12,
      text: 'import { reduce } from "@runwire/protocol";\nreduce(1);',
    };
    await expect(compiles([wrong])).rejects.toThrow(/README\.md\.12\.ts\(13,\d+\): error TS/);
  });

  it("run a script's blocks as one, on the server's own port, without what starts the server", async () => {
    const asked: string[] = [];
    const fake = createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`);
      response.end('{"run_id":"run_1"}');
    });
    const { url, close } = await loopback(fake);
    const blocks = [
      "npm ci && npm start   # in its own terminal",
      `RUN=$(curl -s -X POST http://127.0.0.1:4700/v1/agent/runs \\\n  -d '{"prompt":"hi"}' | grep -o 'run_[0-9]')`,
      "npm test\ncurl -N http://127.0.0.1:4700/v1/agent/runs/$RUN/stream",
    ];
    try {
      await runScript(
        blocks.map((text) => ({ language: "sh", line: 1, text })),
        url,
      );
      expect(asked).toEqual(["POST /v1/agent/runs", "GET /v1/agent/runs/run_1/stream"]);
      await expect(runScript([{ language: "sh", line: 1, text: "false\ntrue" }], url)).rejects.toThrow();
      await expect(runScript([{ language: "sh", line: 1, text: "echo $UNSET_NAME" }], url)).rejects.toThrow();
    } finally {
      await close();
    }
  });

  it("find fences, links and headings", () => {
    const text =
      "# The `koder` dialect\n[a](b.md#c) `[no](x)`\n```ts\nlet a;\n[no](y)\n```\n- x\n  ```sh\n  ls\n  ```\n";
    expect(fencesOf(text)).toEqual([
      { language: "ts", text: "let a;\n[no](y)", line: 4 },
      { language: "sh", text: "ls", line: 9 },
    ]);
    expect(linksOf(text)).toEqual(["b.md#c"]);
    expect([...anchorsOf(text)]).toEqual(["the-koder-dialect"]);
    expect(() => fencesOf("```ts\nopen")).toThrow("never closes");
  });
});

/** One compiler for all blocks. Blank lines before a block make the compiler count like the document. */
async function compiles(blocks: readonly (Fence & { readonly name: string })[]): Promise<void> {
  if (blocks.length === 0) return;
  // Inside the package, so that imports resolve as they do for a user of the workspace.
  const folder = mkdtempSync(join(root, "packages/conformance/dist/docs-"));
  try {
    for (const { name, line, text, language } of blocks) {
      const file = `${name.replaceAll("/", "-")}.${line}.${language}`;
      writeFileSync(join(folder, file), `${"\n".repeat(line - 1)}${text}\nexport {};\n`);
    }
    const tsconfig = {
      extends: join(root, "tsconfig.base.json"),
      compilerOptions: {
        composite: false,
        declaration: false,
        declarationMap: false,
        noEmit: true,
        types: ["node"],
        lib: ["ES2023", "DOM", "DOM.Iterable", "DOM.AsyncIterable"],
        jsx: "react-jsx",
      },
      include: ["*.ts", "*.tsx"],
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(tsconfig));
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    await run(process.execPath, [tsc, "-p", folder, "--pretty", "false"], { cwd: folder }).catch(
      (failure) => {
        throw new Error(`blocks that do not compile:\n${failure.stdout}${failure.stderr}`);
      },
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runScript(blocks: readonly Fence[], url: string, cwd = root): Promise<void> {
  const script = shellScript(blocks, url, String(await freePort()));
  const set = { PROGRAM: join(root, "packages/cli/bin/runwire.js"), SERVER_PORT: new URL(url).port };
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("RUNWIRE_"));
  const env = { ...Object.fromEntries(inherited), ...set };
  await run("bash", ["-c", script], { cwd, env, timeout: scriptMsMax, killSignal: "SIGKILL" }).catch(
    (failure) => {
      throw new Error(
        `the commands failed (${failure.code ?? failure.signal}):\n${failure.stdout}\n${failure.stderr}`,
      );
    },
  );
}

/** For a server that a script stops and starts again, and that must be found where it was. */
async function freePort(): Promise<number> {
  const { port, close } = await loopback(createServer());
  await close();
  return port;
}
