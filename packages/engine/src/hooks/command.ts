// A hook that is the operator's command. It is handed one JSON object on its standard input, and says by its exit code
// what it thinks: 0 goes on, 2 refuses with what it wrote to standard error, anything else has failed. It has what a
// command of the shell tool has, which is no secret, and what it leaves running is ended with it.

import { spawn } from "node:child_process";
import { isNamedBy, isObject } from "@runwire/protocol";
import { bareEnvironment, over, started } from "../tools/process-group.js";
import { type Hook, type HookAnswer, type HookCall, HookFailure, type HookPoint } from "./hook.js";
import { hookLimits } from "./limits.js";

export interface HookCommand {
  readonly name: string;
  readonly point: HookPoint;
  /** Names of tools, or beginnings of names as `file.*`; `*` is all of them. */
  readonly tools: readonly string[];
  /** The program and its arguments. No shell reads them. */
  readonly command: readonly [string, ...string[]];
  readonly timeoutMs: number;
  readonly required: boolean;
}

export function commandHook({ name, point, tools, command, timeoutMs, required }: HookCommand): Hook {
  return {
    name,
    points: [point],
    required,
    takesTime: true,
    appliesTo: (tool) => tools.some((pattern) => isNamedBy(pattern, tool.name)),
    async run(call, signal) {
      const late = AbortSignal.timeout(timeoutMs);
      const { exit_code, stdout, stderr } = await ranWith(command, call, AbortSignal.any([signal, late]));
      signal.throwIfAborted();
      if (exit_code === null && late.aborted)
        throw new HookFailure("timeout", `it took longer than ${timeoutMs} ms`);
      const said = stderr.trim();
      if (exit_code === 2) return { kind: "refuse", why: said === "" ? `the hook ${name} says no` : said };
      if (exit_code !== 0)
        throw new HookFailure("exit", said === "" ? `it ended with ${exit_code ?? "a signal"}` : said, {
          exit_code,
        });
      return call.point === "pre_tool_use" ? answerIn(stdout) : { kind: "go" };
    },
  };
}

/** What does not even begin like an object is talk, and means nothing. */
function answerIn(stdout: string | null): HookAnswer {
  if (stdout === null)
    throw new HookFailure("output", `it wrote more than ${hookLimits.stdoutBytesMax} bytes`);
  if (!stdout.trimStart().startsWith("{")) return { kind: "go" };
  try {
    const answer: unknown = JSON.parse(stdout);
    if (isObject(answer))
      return Object.hasOwn(answer, "input") ? { kind: "go", input: answer.input } : { kind: "go" };
  } catch {
    // Told below, like anything that is no object.
  }
  throw new HookFailure("output", "what it wrote is not JSON");
}

interface Ran {
  /** Null where it was ended. */
  readonly exit_code: number | null;
  /** Null where it was too much. */
  readonly stdout: string | null;
  readonly stderr: string;
}

async function ranWith(
  [program, ...args]: HookCommand["command"],
  call: HookCall,
  signal: AbortSignal,
): Promise<Ran> {
  const child = spawn(program, args, {
    cwd: call.workspace,
    env: bareEnvironment(call.workspace),
    stdio: "pipe",
    detached: true,
  });
  await started(child, notStarted);
  const stdout = kept(child.stdout, hookLimits.stdoutBytesMax);
  const stderr = kept(child.stderr, hookLimits.stderrBytesMax);
  // One that has ended without reading has heard enough.
  child.stdin.on("error", () => {});
  child.stdin.end(textOf(call));
  const exit_code = await over(child, signal);
  const { text, isWhole } = stdout();
  return { exit_code, stdout: isWhole ? text : null, stderr: stderr().text };
}

function textOf({ point, run_id, call_id, tool, input, output, error }: HookCall): string {
  const result = { ...(output === undefined ? {} : { output }), ...(error === undefined ? {} : { error }) };
  return `${JSON.stringify({ point, run_id, call_id, tool: tool.name, input, ...result })}\n`;
}

function notStarted({ code }: NodeJS.ErrnoException): HookFailure {
  return new HookFailure("start", `it could not be started (${code ?? "broken"})`);
}

function kept(
  stream: NodeJS.ReadableStream,
  bytesMax: number,
): () => { readonly text: string; readonly isWhole: boolean } {
  const chunks: Buffer[] = [];
  let bytes = 0;
  stream.on("data", (chunk: Buffer) => {
    if (bytes < bytesMax) chunks.push(chunk);
    bytes += chunk.length;
  });
  // A pipe that breaks has said all it will.
  stream.on("error", () => {});
  return () => ({ text: Buffer.concat(chunks).subarray(0, bytesMax).toString(), isWhole: bytes <= bytesMax });
}
