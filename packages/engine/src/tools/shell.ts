// A command in the workspace. It has nothing of this process but a place to run in: no keys, no open files, no input.
// It is a process group of its own, and the call is over when its shell is: whatever is left of the group is ended then,
// so nothing runs on unseen, and no pipe that a grandchild holds is waited for. A process that leaves the group
// (setsid) is out of reach, and all of them are the same user as this one: the shell is for sandboxed machines.

import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { TextDecoder } from "node:util";
import type { Tool } from "../tool.js";
import { ToolFailure } from "../tool.js";
import { excerptOf } from "./excerpt.js";
import { checkedTool } from "./input.js";
import { toolLimits } from "./limits.js";
import { bareEnvironment, over, started } from "./process-group.js";

interface Input {
  readonly command: string;
  readonly timeout_s?: number;
}

type Shell = ChildProcessByStdio<null, Readable, Readable>;

export function shellTool(): Tool {
  return checkedTool<Input>({
    name: "shell",
    description:
      "Run a command with /bin/sh in the workspace. What it leaves running in the background is ended with it.",
    effect: "destructive",
    // It begins in the workspace, and may leave it: there is no fence here but the machine's own.
    sandbox: {
      name: "process-group",
      filesystem: { access: "unrestricted", cwd: "workspace" },
      network: { access: "unrestricted" },
      process: {
        access: "own-group",
        environment: ["PATH", "HOME", "LANG"],
        stdin: "none",
        endsWithCall: true,
        timeoutMsMax: toolLimits.shellMsMax,
      },
    },
    input_schema: {
      type: "object",
      required: ["command"],
      additionalProperties: false,
      properties: {
        command: { type: "string", minLength: 1, maxLength: 100_000, pattern: "^[^\\u0000]*$" },
        timeout_s: { type: "number", exclusiveMinimum: 0, maximum: toolLimits.shellMsMax / 1000 },
      },
    },
    async run({ command, timeout_s = toolLimits.shellMs / 1000 }, { signal, workspace, say, began }) {
      signal.throwIfAborted();
      const shell = spawn("/bin/sh", ["-c", command], {
        cwd: workspace,
        env: bareEnvironment(workspace),
        stdio: ["ignore", "pipe", "pipe"],
        // A session and a group of its own, named by its process id.
        detached: true,
      });
      const tellEnd = began({ command, cwd: ".", pid: shell.pid });
      await started(shell, notStarted).catch((error: unknown) => {
        tellEnd({ kind: "failed", reason: "not-started" });
        throw error;
      });
      const output = collect(shell, say);
      const late = AbortSignal.timeout(Math.ceil(timeout_s * 1000));
      const exit_code = await over(shell, AbortSignal.any([signal, late]));
      const timed_out = exit_code === null && late.aborted;
      if (exit_code !== null) tellEnd({ kind: "completed", exit_code });
      else {
        const reason = signal.aborted ? "aborted" : timed_out ? "timeout" : "signal";
        tellEnd({ kind: "terminated", signal: shell.signalCode, reason });
      }
      signal.throwIfAborted();
      return { exit_code, signal: shell.signalCode, timed_out, ...output() };
    },
  });
}

function notStarted(cause: Error): ToolFailure {
  return new ToolFailure("failed", "The shell could not be started.", { cause });
}

/** Shows what is printed, as it comes and as far as it may be shown; gives what is kept of it. */
function collect(
  shell: Shell,
  say: (text: string) => void,
): () => { output: string; left_out_bytes: number } {
  const kept = excerptOf(toolLimits.shellHeadBytes, toolLimits.shellTailBytes);
  let sayable: number = toolLimits.shellSaidBytesMax;
  const take = (text: string): void => {
    if (text === "") return;
    kept.add(text);
    // What has just filled it is followed by a note, too.
    if (sayable < 0) return;
    const bytes = Buffer.byteLength(text);
    say(bytes <= sayable ? text : "\n[… the rest is not shown …]\n");
    sayable -= bytes;
  };
  for (const stream of [shell.stdout, shell.stderr]) {
    // One for each: a character may come in two pieces.
    const decoder = new TextDecoder();
    stream.on("data", (bytes: Buffer) => take(decoder.decode(bytes, { stream: true })));
    stream.on("end", () => take(decoder.decode()));
    // A pipe that breaks has said all it will.
    stream.on("error", () => {});
  }
  return () => ({ output: kept.read(), left_out_bytes: kept.leftOutBytes() });
}
