import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeOf, type TestContext, testContext } from "../testing/context.js";
import { loopback } from "../testing/loopback.js";
import { mcpEndless } from "../testing/mcp-endless.js";
import { type McpHttp, mcpHttp } from "../testing/mcp-http.js";
import { toolLimits } from "./limits.js";
import { type McpServer, type McpTools, mcpTools } from "./mcp.js";
import { mcpSource, moreOf } from "./source.js";

const program = fileURLToPath(new URL("../testing/mcp-stdio.js", import.meta.url));
const stdio = (rest: object = {}): McpServer => ({
  name: "test",
  command: process.execPath,
  args: [program],
  ...rest,
});

let context: TestContext;
let http: McpHttp;
let opened: McpTools[] = [];
beforeEach(async () => {
  context = testContext();
  http = await mcpHttp();
});
afterEach(async () => {
  await Promise.all(opened.map(({ close }) => close()));
  opened = [];
  await http.close();
  context.remove();
});

async function open(...servers: readonly McpServer[]) {
  const made = await mcpTools(servers);
  opened.push(made);
  const call = (name: string, input: unknown = {}) => {
    const tool = made.tools.find((known) => known.name === name);
    if (tool === undefined) throw new Error(`no tool ${name}`);
    return outcomeOf(tool, input, context);
  };
  const said = async (name: string, input: unknown = {}) => {
    const { output } = await call(name, input);
    return (output.content as readonly { readonly text: string }[] | undefined)?.[0]?.text ?? "";
  };
  return { ...made, call, said };
}

function isRunning(pid: string): boolean {
  try {
    return process.kill(Number(pid), 0);
  } catch {
    return false;
  }
}

describe.each([
  ["a command", (): McpServer => stdio()],
  ["a URL", (): McpServer => ({ name: "test", url: http.url })],
])("an MCP server that is %s", (_, server) => {
  it("brings its tools, by its name, with their schemas and effects", async () => {
    const { tools } = await open(server());
    expect(tools.length).toBeGreaterThan(10);
    const effects = Object.fromEntries(tools.map(({ name, effect }) => [name, effect]));
    expect(effects).toMatchObject({
      "test.echo": "read-only",
      "test.refuse": "destructive",
      "test.die": "destructive",
    });
    expect(tools.find(({ name }) => name === "test.add")).toMatchObject({
      description: "does add",
      input_schema: { type: "object", properties: { odd: { type: "string", pattern: "(" } } },
    });
  });

  it("gives text, structure, pictures and resources as JSON", async () => {
    const { call } = await open(server());
    expect((await call("test.echo", { a: [1, "ä"] })).output).toEqual({
      content: [{ type: "text", text: '{"a":[1,"ä"]}' }],
    });
    expect((await call("test.add", { a: 2, b: 3 })).output).toEqual({
      content: [{ type: "text", text: '{"sum":5}' }],
      structured: { sum: 5 },
    });
    expect((await call("test.picture")).output).toEqual({
      content: [
        { type: "image", mime_type: "image/png", data: "AAEC" },
        { type: "audio", mime_type: "audio/wav", data: "AAEC" },
        { type: "resource", uri: "note:1", mime_type: "text/plain", text: "a note" },
        { type: "resource", uri: "note:2", data: "AAEC" },
        { type: "resource_link", uri: "note:3", name: "another" },
      ],
    });
  });

  it("says what went wrong, and goes on", async () => {
    const { call, said } = await open(server());
    const pid = await said("test.pid");
    expect(await call("test.refuse")).toMatchObject({ kind: "failed", message: "there is no such city" });
    expect(await call("test.misuse")).toMatchObject({
      kind: "invalid-input",
      message: expect.stringContaining("city is missing"),
    });
    expect(await call("test.break")).toMatchObject({
      kind: "failed",
      message: expect.stringContaining("broken inside"),
    });
    expect(await call("test.echo", "text")).toMatchObject({ kind: "invalid-input" });
    const chars = toolLimits.mcpResultCharsMax;
    expect(await call("test.large", { chars })).toMatchObject({ kind: "too-large" });
    for (const levels of [65, 2000])
      expect(await call("test.deep", { levels })).toMatchObject({ kind: "too-large" });
    expect((await call("test.deep", { levels: 50 })).kind).toBeNull();
    expect(await said("test.pid")).toBe(pid);
  });

  it("is told when a call is called off, and others go on", async () => {
    const { call, said } = await open(server());
    const note = join(context.outside, "note");
    const waiting = call("test.wait", { note });
    await expect.poll(() => existsSync(`${note}.begun`), { interval: 5 }).toBe(true);
    context.abort();
    await expect(waiting).rejects.toThrow("aborted");
    await expect.poll(() => existsSync(`${note}.cancelled`), { interval: 5 }).toBe(true);
    context = { ...testContext(), remove: context.remove };
    expect(await said("test.echo", { a: 1 })).toBe('{"a":1}');
  });

  it("that takes too long with a call fails that call, and no other", async () => {
    const { call, said } = await open({ ...server(), callMs: 300 });
    const pid = await said("test.pid");
    const note = join(context.outside, "note");
    expect(await call("test.wait", { note })).toMatchObject({ kind: "timeout" });
    expect(await said("test.pid")).toBe(pid);
  });

  it("is not called after it was closed", async () => {
    const { call, close } = await open(server());
    await close();
    expect(await call("test.echo")).toMatchObject({ kind: "unreachable" });
  });
});

describe("an MCP server that is a command", () => {
  it("has the environment that its settings name, and nothing of ours", async () => {
    process.env.RUNWIRE_TEST_KEY = "secret";
    const { said } = await open(stdio({ env: { CITY: "Ulm" } }));
    delete process.env.RUNWIRE_TEST_KEY;
    const seen = JSON.parse(await said("test.environment"));
    expect(seen).toEqual({
      CITY: "Ulm",
      PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    });
  });

  it("that dies fails the calls under way, and is started again for the next", async () => {
    const { call, said } = await open(stdio());
    const first = await said("test.pid");
    const note = join(context.outside, "note");
    const waiting = call("test.wait", { note });
    await expect.poll(() => existsSync(`${note}.begun`), { interval: 5 }).toBe(true);
    expect(await call("test.die")).toMatchObject({ kind: "unreachable" });
    expect(await waiting).toMatchObject({ kind: "unreachable" });
    const second = await said("test.pid");
    expect(second).toMatch(/^\d+$/);
    expect(second).not.toBe(first);
  });

  it("that hangs is left, ended and started again", async () => {
    const { call, said } = await open(stdio({ callMs: 1000 }));
    const first = await said("test.pid");
    expect(await call("test.hang")).toMatchObject({ kind: "timeout" });
    await expect.poll(() => isRunning(first), { timeout: 15_000 }).toBe(false);
    expect(await said("test.echo", { a: 1 })).toBe('{"a":1}');
    expect(await said("test.pid")).not.toBe(first);
  });

  it("that prints what is no message is understood all the same", async () => {
    const { said } = await open(stdio({ args: [program, "noisy"] }));
    expect(await said("test.echo", { a: 1 })).toBe('{"a":1}');
  });

  it("that sends a message without end is cut off", async () => {
    const { call, said } = await open(stdio());
    const chars = toolLimits.mcpMessageBytesMax;
    expect(await call("test.large", { chars })).toMatchObject({ kind: "unreachable" });
    expect(await said("test.echo", { a: 1 })).toBe('{"a":1}');
  });

  it("ends when it is closed", async () => {
    const { said, close } = await open(stdio());
    const pid = await said("test.pid");
    await close();
    await expect.poll(() => isRunning(pid)).toBe(false);
  });

  it("that names two tools alike, or one like one of ours, gives none", async () => {
    await expect(open(stdio({ args: [program, "twice"] }))).rejects.toThrow("two tools named test.echo");
    await expect(mcpTools([stdio()], new Set(["test.pid"]))).rejects.toThrow("two tools named test.pid");
  });

  it("that does not exist, or never answers, is told of by name", { timeout: 30_000 }, async () => {
    await expect(open(stdio({ command: "/no/such/program" }))).rejects.toThrow(
      "the MCP server test gives no tools",
    );
    await expect(open(stdio({ args: [program, "silent"], connectMs: 500 }))).rejects.toThrow(
      "the MCP server test gives no tools",
    );
  });
});

describe("an MCP server that is a URL", () => {
  it("is sent the headers of its settings with every request, and told when we leave", async () => {
    const { said, close } = await open({
      name: "test",
      url: http.url,
      headers: { authorization: "Bearer key" },
    });
    expect(await said("test.echo")).toBe("{}");
    expect(http.sessionCount()).toBe(1);
    await close();
    expect(http.sessionCount()).toBe(0);
    expect(http.headers.every(({ authorization }) => authorization === "Bearer key")).toBe(true);
  });

  it("that has forgotten us fails a call clearly, and is connected to again", async () => {
    const { call, said } = await open({ name: "test", url: http.url });
    http.forgetSessions();
    expect(await call("test.echo")).toMatchObject({ kind: "unreachable" });
    await expect.poll(() => said("test.echo", { a: 1 })).toBe('{"a":1}');
  });

  it("that is gone fails a call clearly, without a word about its address", async () => {
    const { call } = await open({ name: "test", url: http.url });
    await http.close();
    const { kind, message } = await call("test.echo");
    expect(kind).toBe("unreachable");
    expect(message).not.toContain("127.0.0.1");
  });
});

describe("why an MCP server that is a URL gives no tools", () => {
  it("is told without the keys that are in its settings", async () => {
    const withPassword = http.url.replace("http://", "http://me:secret@");
    for (const wrong of [
      { url: withPassword },
      { url: `${withPassword}?key=secret two` },
      { url: http.url, headers: { authorization: "Bearer secret\nX" } },
    ]) {
      const failed = await open({ name: "test", ...wrong }).catch(String);
      expect(failed).toContain("the MCP server test gives no tools: ");
      expect(failed).not.toContain("secret");
    }
  });

  it("is told without a key that the server names", async () => {
    const naming = createServer(({ headers, url = "" }, response) => {
      const key =
        headers.authorization?.replace("Bearer ", "") ?? new URL(url, "http://x").searchParams.get("key");
      response.writeHead(403).end(`invalid token ${key} for ${url}`);
    });
    const { url: at, close } = await loopback(naming);
    for (const wrong of [
      { url: `${at}/mcp`, headers: { authorization: "Bearer s3cr3t" } },
      { url: `${at}/mcp?key=s3cr3t` },
      { url: `${at}/s3cr3t/mcp` },
    ]) {
      const failed = await open({ name: "test", ...wrong }).catch(String);
      expect(failed).toContain("invalid token");
      expect(failed).not.toContain("s3cr3t");
    }
    await close();
  });

  it("is told in a line, however much it answers", async () => {
    const talker = createServer((_, response) => response.writeHead(500).end("x".repeat(1_000_000)));
    const { url, close } = await loopback(talker);
    const failed = String(await open({ name: "test", url }).catch(String));
    expect(failed).toContain("gives no tools");
    expect(failed.length).toBeLessThan(toolLimits.mcpErrorCharsMax + 100);
    await close();
  });
});

describe("an MCP server that is a URL and does not come to an end", () => {
  it.each(["json", "event", "line", "refusal"])("with one message is cut off: %s", async (way) => {
    const endless = await mcpEndless();
    const { call } = await open({ name: "test", url: endless.url });
    expect(await call(`test.${way}`)).toMatchObject({ kind: "unreachable" });
    await expect.poll(endless.openCount).toBe(0);
    expect(await call(`test.${way}`)).toMatchObject({ kind: "unreachable" });
    await endless.close();
  });

  it.each(["events", "silence"])("is not listened to when its call has timed out: %s", async (way) => {
    const endless = await mcpEndless();
    const { call } = await open({ name: "test", url: endless.url, callMs: 300, connectMs: 1000 });
    expect(await call(`test.${way}`)).toMatchObject({ kind: "timeout" });
    await expect.poll(endless.openCount, { timeout: 5000 }).toBe(0);
    await endless.close();
  });

  it("is asked to go on now and then, however often it asks for that", async () => {
    const endless = await mcpEndless();
    const { call } = await open({ name: "test", url: endless.url, callMs: 1500 });
    expect(await call("test.again")).toMatchObject({ kind: "timeout" });
    expect(endless.streamCount()).toBeGreaterThan(0);
    expect(endless.streamCount()).toBeLessThan(5);
    await endless.close();
  });
});

describe("an MCP server that does not get to its last tool", () => {
  it("is given up on, however many pages it has", async () => {
    const endless = await mcpEndless("pages");
    await expect(open({ name: "test", url: endless.url, connectMs: 500 })).rejects.toThrow("timed out");
    expect(endless.pageCount()).toBeGreaterThan(1);
    await endless.close();
  });

  it("is not waited for by whoever leaves", async () => {
    const endless = await mcpEndless("never");
    const source = mcpSource(
      { name: "test", url: endless.url, connectMs: 600_000 },
      { monotonic: () => 0 },
      () => {},
      new Set(),
    );
    const listed = source.tools().catch(() => "none");
    await expect.poll(endless.pageCount, { interval: 5 }).toBe(1);
    await source.close();
    expect(await listed).toBe("none");
    await endless.close();
  });

  it("nor is one that does not even start", async () => {
    const started = stdio({ args: [program, "silent"], connectMs: 600_000 });
    const source = mcpSource(started, { monotonic: () => 0 }, () => {}, new Set());
    const listed = source.tools().catch(() => "none");
    await source.close();
    expect(await listed).toBe("none");
  });
});

describe("an MCP server that was away", () => {
  /** Ends at once while it is not `up`, and hangs until it is `ready`. */
  function awaySource() {
    const at = (name: string): string => join(context.outside, name);
    const [up, ready, pid] = [at("up"), at("ready"), at("pid")];
    const hang = `until [ -e ${ready} ]; do [ -e ${up} ] || exit 1; sleep 0.02; done`;
    const script = `[ -e ${up} ] || exit 1; echo $$ > ${pid}; ${hang}; exec "$@"`;
    const args = ["-c", script, "sh", process.execPath, program];
    let nowMs = 0;
    const failures: string[] = [];
    const source = mcpSource(
      stdio({ command: "/bin/sh", args, connectMs: 600_000 }),
      { monotonic: () => nowMs },
      (name) => failures.push(name),
      new Set(),
    );
    return {
      source,
      failures,
      passMs: (ms: number) => {
        nowMs += ms;
      },
      comeUp: () => writeFileSync(up, ""),
      getReady: () => writeFileSync(ready, ""),
      pidOf: () => (existsSync(pid) ? readFileSync(pid, "utf8").trim() : ""),
    };
  }

  it("is waited for once, and taken over when a later try succeeds", { timeout: 30_000 }, async () => {
    const { source, failures, passMs, comeUp, getReady, pidOf } = awaySource();
    await expect(source.tools()).rejects.toThrow("gives no tools");
    comeUp();
    passMs(toolLimits.mcpRetryMs);
    await expect(source.tools()).rejects.toThrow("gives no tools");
    await expect.poll(pidOf, { interval: 5 }).toMatch(/^\d+$/);
    passMs(toolLimits.mcpRetryMs);
    await expect(source.tools()).rejects.toThrow("gives no tools");
    getReady();
    const found = () =>
      source.tools().then(
        ({ length }) => length,
        () => 0,
      );
    await expect.poll(found, { interval: 5, timeout: 10_000 }).toBeGreaterThan(10);
    expect(failures).toEqual(["test"]);
    await source.close();
  });

  it("gives its tools to whoever asks first after it is back", { timeout: 30_000 }, async () => {
    const { source, passMs, comeUp, getReady } = awaySource();
    await expect(source.tools()).rejects.toThrow("gives no tools");
    comeUp();
    getReady();
    passMs(toolLimits.mcpRetryMs);
    expect((await source.tools()).length).toBeGreaterThan(10);
    await source.close();
  });

  it("is not taken away by an answer that was begun before it was back", () => {
    const tools = (...missing: string[]) => ({ tools: [], missing });
    const had = tools("one");
    expect(moreOf(had, tools("one", "two"))).toBe(had);
    expect(moreOf(had, tools())).toEqual(tools());
  });

  it("is left behind by nobody who leaves while it is tried again", { timeout: 30_000 }, async () => {
    const { source, passMs, comeUp, pidOf } = awaySource();
    await expect(source.tools()).rejects.toThrow("gives no tools");
    comeUp();
    passMs(toolLimits.mcpRetryMs);
    await expect(source.tools()).rejects.toThrow("gives no tools");
    await expect.poll(pidOf, { interval: 5 }).toMatch(/^\d+$/);
    await source.close();
    expect(isRunning(pidOf())).toBe(false);
  });
});

describe("several MCP servers", () => {
  it("keep their tools apart", async () => {
    const { said, tools } = await open(stdio({ name: "one" }), { name: "two", url: http.url });
    expect(new Set(tools.map(({ name }) => name)).size).toBe(tools.length);
    expect(await said("one.pid")).not.toBe(await said("two.pid"));
  });

  it("are all closed when one of them cannot be had", async () => {
    await expect(open({ name: "two", url: http.url }, stdio({ command: "/no/such" }))).rejects.toThrow(
      "test gives no tools",
    );
    expect(http.sessionCount()).toBe(0);
    await expect(open({ name: "Not a name", url: http.url })).rejects.toThrow("cannot be named");
  });
});
