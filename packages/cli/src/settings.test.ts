import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { builtInTools, clarifyTool, demoTools, spawnTool } from "@runwire/engine";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ownNames } from "./agent-settings.js";
import { readSettings } from "./settings.js";
import { runwireIn } from "./testing/command.js";

describe("settings", () => {
  let folder: string;
  let before: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "runwire-settings-"));
    before = process.cwd();
    process.chdir(folder);
  });
  afterEach(() => {
    process.chdir(before);
    rmSync(folder, { recursive: true });
  });

  it("come from flags, then variables, then the file, then the defaults", () => {
    writeFileSync("runwire.config.json", '{"port": 1, "durability": "os", "log": "info"}');
    const settings = readSettings({ port: "3" }, { RUNWIRE_PORT: "2", RUNWIRE_LOG: "debug", HOME: "/" });
    expect(settings).toMatchObject({ port: 3, log: "debug", durability: "os", host: "127.0.0.1" });
  });

  it.each([
    [{ port: "65536" }, {}, "--port"],
    [{ host: "0.0.0.0" }, {}, "--host"],
    [{ graceMs: "soon" }, {}, "--grace-ms"],
    [{ shell: "yes" }, {}, "--shell"],
    [{ fetchHosts: "http://wiki.corp/" }, {}, "--fetch-hosts"],
    [{}, { RUNWIRE_PORT: "" }, "RUNWIRE_PORT"],
    [{}, { RUNWIRE_PROT: "1" }, "RUNWIRE_PROT"],
  ])("that are not possible are named: %j %j", (flags, env, named) => {
    expect(() => readSettings(flags, env)).toThrow(named);
  });

  it("leave the clients' own variables alone", () => {
    const { port } = readSettings(
      {},
      { RUNWIRE_URL: "http://127.0.0.1:1", RUNWIRE_TOKEN: "x", RUNWIRE_PORT: "2" },
    );
    expect(port).toBe(2);
  });

  it.each(["{", "[]", '{"prot": 1}', '{"port": "x"}', '{"data": null}', '{"jwt-issuer": true}'])(
    "in a wrong file are named: %s",
    (text) => {
      writeFileSync("runwire.config.json", text);
      expect(() => readSettings({}, {})).toThrow("runwire.config.json");
    },
  );

  it("in a file that is no JSON are not repeated, only where they are", () => {
    for (const [text, says] of [
      ['{\n"jwt-secret": s3cr3t-value\n}', /is not JSON$/],
      ['{\n"jwt-secret": "s3cr3t-value" "port": 1}', /is not JSON, at line 2$/],
      ["s3cr3t", /is not JSON$/],
    ] as const) {
      writeFileSync("runwire.config.json", text);
      expect(() => readSettings({}, {})).toThrow(says);
      expect(() => readSettings({}, {})).not.toThrow(/s3c/);
    }
  });

  it("are read from a file that begins with a byte order mark", () => {
    writeFileSync("runwire.config.json", '\uFEFF{"port": 1}');
    expect(readSettings({}, {}).port).toBe(1);
  });

  it("are not left out where their file cannot be read", () => {
    mkdirSync("runwire.config.json");
    expect(() => readSettings({}, {})).toThrow("runwire.config.json: EISDIR");
  });

  it("bring MCP servers from the file or a variable, as other programs write them", () => {
    const mcp = {
      files: { command: "mcp-files", args: ["/srv"], env: { KEY: "secret" } },
      wiki: { type: "http", url: "https://wiki.example.com/mcp", headers: { Authorization: "Bearer x" } },
    };
    writeFileSync("runwire.config.json", JSON.stringify({ mcp, shell: "on" }));
    const { files, wiki } = mcp;
    const { type: _, ...wikiRest } = wiki;
    expect(readSettings({}, {})).toMatchObject({
      shell: "on",
      fetchHosts: [],
      mcp: [
        { name: "files", ...files },
        { name: "wiki", ...wikiRest },
      ],
    });
    const env = {
      RUNWIRE_MCP: JSON.stringify({ only: files }),
      RUNWIRE_FETCH_HOSTS: "wiki.corp, 10.0.0.7:80",
    };
    expect(readSettings({}, env)).toMatchObject({
      mcp: [{ name: "only" }],
      fetchHosts: ["wiki.corp", "10.0.0.7:80"],
    });
    expect(readSettings({ shell: "off" }, {}).shell).toBe("off");
  });

  it("bring hooks from the file or a variable, with what nobody says filled in", () => {
    const check = { point: "pre_tool_use", command: ["/usr/bin/check", "-v"] };
    const audit = {
      point: "post_tool_use",
      tools: ["file.*"],
      command: ["check"],
      timeout_ms: 5,
      name: "audit",
    };
    writeFileSync(
      "runwire.config.json",
      JSON.stringify({ hooks: [check, { ...audit, required: true }, check] }),
    );
    expect(readSettings({}, {}).hooks).toEqual([
      { ...check, name: "check", tools: ["*"], timeoutMs: 10_000, required: false },
      {
        point: "post_tool_use",
        tools: ["file.*"],
        command: ["check"],
        name: "audit",
        timeoutMs: 5,
        required: true,
      },
      { ...check, name: "check-2", tools: ["*"], timeoutMs: 10_000, required: false },
    ]);
    expect(readSettings({}, { RUNWIRE_HOOKS: JSON.stringify([check]) }).hooks).toMatchObject([
      { name: "check" },
    ]);
    writeFileSync("runwire.config.json", JSON.stringify({ hooks: [] }));
    expect(readSettings({}, {}).hooks).toEqual([]);
  });

  it.each([
    ["{}", "JSON list"],
    ["[1]", "hook 1 must be an object"],
    ['[{"command": ["x"]}]', "hook 1 needs a `point`"],
    ['[{"point": "stop", "command": ["x"]}]', "`point`"],
    ['[{"point": "pre_tool_use", "command": "x"}]', "`command`"],
    ['[{"point": "pre_tool_use", "command": []}]', "`command`"],
    ['[{"point": "pre_tool_use", "command": ["./check"]}]', "whole path"],
    ['[{"point": "pre_tool_use", "command": ["x"], "tools": "shell"}]', "`tools`"],
    ['[{"point": "pre_tool_use", "command": ["x"], "timeout_ms": 0}]', "`timeout_ms`"],
    ['[{"point": "pre_tool_use", "command": ["x"], "required": "yes"}]', "`required`"],
    ['[{"point": "pre_tool_use", "command": ["x"], "timeoutMs": 5}]', "`timeoutMs`, which means nothing"],
    ['[{"point": "pre_tool_use", "command": ["x"], "name": "input-check"}]', "`name`"],
  ])("refuse hooks that cannot be, in words: %s", (text, named) => {
    expect(() => readSettings({}, { RUNWIRE_HOOKS: text })).toThrow(named);
  });

  it("keep the names of the agent's own tools from MCP servers", () => {
    const own = [...builtInTools({ shell: {} }), ...demoTools({ searchMs: 0 }), spawnTool, clarifyTool];
    expect(ownNames).toEqual(new Set([...own.map(({ name }) => name.split(".")[0]), "plan"]));
  });

  it.each([
    ["not JSON", "JSON object"],
    ["[]", "JSON object"],
    ['{"a": 1}', "`command` or `url`"],
    ['{"a": {}}', "`command` or `url`"],
    ['{"a": {"command": "x", "url": "http://x"}}', "`command` or `url`"],
    ['{"A b": {"command": "x"}}', "A b"],
    ['{"file": {"command": "x"}}', "tools of the agent itself"],
    ['{"shell": {"command": "x"}}', "tools of the agent itself"],
    ['{"a": {"command": ""}}', "`command`"],
    ['{"a": {"command": "x", "args": "s3cret"}}', "`args`"],
    ['{"a": {"command": "x", "env": {"KEY": 5}}}', "`env`"],
    ['{"a": {"command": "x", "headers": {}}}', "`headers`"],
    ['{"a": {"url": "s3cret"}}', "`url`"],
    ['{"a": {"url": "file:///s3cret"}}', "`url`"],
    ['{"a": {"url": "http://x", "type": "sse"}}', "`type`"],
  ])("refuse MCP servers that cannot be, in words and without their secrets: %s", (text, named) => {
    const refusal = (): unknown => readSettings({}, { RUNWIRE_MCP: text });
    expect(refusal).toThrow("RUNWIRE_MCP: ");
    expect(refusal).toThrow(named);
    expect(refusal).not.toThrow("s3cret");
  });

  it("that are wrong stop the start with one line and exit code 1", () => {
    const { status, stderr, stdout } = runwireIn(folder, ["serve", "--port", "x"]);
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(stderr).toContain("--port");
  });

  it("are all listed by --help, with their variables", () => {
    const { status, stdout } = runwireIn(folder, ["serve", "--help"]);
    expect(status).toBe(0);
    for (const name of [
      "--port",
      "RUNWIRE_PORT",
      "--data",
      "RUNWIRE_DATA",
      "--durability",
      "--log",
      "--grace-ms",
    ]) {
      expect(stdout).toContain(name);
    }
  });
});
