import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type TestContext, testContext } from "../testing/context.js";

let context: TestContext;
beforeEach(() => {
  context = testContext();
});
afterEach(() => context.remove());

const moduleAt = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href);

/** Uses up its files, then starts a command in each way that there is; prints how these failed. */
const program = `
  import { closeSync, openSync } from "node:fs";
  import { setImmediate } from "node:timers/promises";
  import { shellTool } from ${moduleAt("./shell.js")};
  import { commandHook } from ${moduleAt("../hooks/command.js")};
  const { signal } = new AbortController();
  const [workspace] = process.argv.slice(1);
  const ends = [];
  const context = { signal, workspace, say() {}, began: () => (end) => ends.push(end) };
  const hook = commandHook({ name: "h", point: "pre_tool_use", tools: ["*"], command: ["true"], timeoutMs: 9000 });
  const call = { point: "pre_tool_use", run_id: "r", call_id: "c", tool: { name: "look" }, input: {}, workspace };
  const files = [];
  try {
    for (;;) files.push(openSync("/dev/null"));
  } catch {}
  const failures = [
    await shellTool().run({ command: "true" }, context).catch((error) => error.kind),
    await hook.run(call, signal).catch((error) => error.reason),
  ];
  await setImmediate();
  for (const file of files) closeSync(file);
  const { exit_code } = await shellTool().run({ command: "true" }, context);
  console.log(JSON.stringify({ failures, ends, exit_code }));
`;

test("where this process has no file left, a command or a hook has not started, and nothing else ends", async () => {
  const node = [process.execPath, "--input-type=module", "--eval", program, context.workspace];
  const { stdout } = await promisify(execFile)("/bin/sh", ["-c", 'ulimit -n 256; exec "$@"', "sh", ...node]);
  expect(JSON.parse(stdout)).toEqual({
    failures: ["failed", "start"],
    ends: [
      { kind: "failed", reason: "not-started" },
      { kind: "completed", exit_code: 0 },
    ],
    exit_code: 0,
  });
});
