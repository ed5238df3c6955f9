import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const source = fileURLToPath(new URL("..", import.meta.url));
const { version, files, dependencies } = JSON.parse(readFileSync(join(source, "package.json"), "utf8")) as {
  version: string;
  files: string[];
  dependencies: Record<string, string>;
};

// The command as npm installs it: the files that are published, and the packages that it says it needs.
let folder: string;
let installed: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "runwire-installed-"));
  const modules = join(folder, "node_modules");
  installed = join(modules, "runwire");
  for (const file of [...files, "package.json"]) {
    cpSync(join(source, file), join(installed, file), { recursive: true });
  }
  for (const name of Object.keys(dependencies)) {
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(source, "../../node_modules", name), join(modules, name));
  }
});
afterAll(() => rmSync(folder, { recursive: true }));

function node(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" });
  expect(stderr).toBe("");
  expect(status).toBe(0);
  return stdout;
}

describe("runwire as it is published", () => {
  it("starts", () => {
    expect(node(join(installed, "bin/runwire.js"), "--version")).toBe(`${version}\n`);
  });

  it("loads nothing that it does not say it needs", () => {
    const bundle = join(installed, "bundle");
    const scripts = readdirSync(bundle).filter((file) => file.endsWith(".js"));
    const loaded = scripts.flatMap((file) => {
      const code = readFileSync(join(bundle, file), "utf8");
      return [...code.matchAll(/^(?:import|export)\b.*?["']([^"']+)["'];$|\bimport\(["']([^"']+)["']\)/gm)];
    });
    const names = loaded.map(([, still, later]) => still ?? later!);
    const others = names.filter((name) => !isBuiltin(name) && !name.startsWith("."));
    expect([...new Set(others)]).toEqual(Object.keys(dependencies));
  });

  it("says whose code it brings", () => {
    const text = readFileSync(join(installed, "bundle/LICENSES.txt"), "utf8");
    for (const name of ["commander", "zod", "ws", "@modelcontextprotocol/sdk"]) {
      expect(text).toMatch(new RegExp(`^${name} \\d`, "m"));
    }
    expect(text).toContain("Permission is hereby granted");
  });
});
