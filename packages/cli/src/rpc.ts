// `runwire rpc`: runs over JSON-RPC 2.0 on stdin and stdout, for a program that starts this one. Stdout is protocol and
// nothing else; the session ends with stdin.

import { once } from "node:events";
import type { Command } from "commander";
import { leaving } from "./leaving.js";
import { rpcSession } from "./rpc/session.js";
import { addServerOptions, endpointOf, type ServerFlags } from "./server-flags.js";
import { numberedLines } from "./wires/numbered-lines.js";

interface RpcFlags extends ServerFlags {
  readonly wait?: boolean;
}

export function addRpc(program: Command): void {
  const rpc = program
    .command("rpc")
    .description("speak JSON-RPC 2.0 on stdin and stdout, one message a line")
    .option("--wait", "at the end of stdin, go on until the runs that are followed have ended");
  addServerOptions(rpc).addHelpText(
    "after",
    `\nExample:\n  echo '{"jsonrpc":"2.0","id":1,"method":"runs.list"}' | runwire rpc\n\nExit codes: 0 at the end of stdin, 130 left with Ctrl-C.`,
  );
  rpc.action((flags: RpcFlags) => speak(flags));
}

async function speak(flags: RpcFlags): Promise<void> {
  const { stdin, stdout } = process;
  const { signal } = leaving();
  const session = rpcSession(endpointOf(flags, process.env), async (text) => {
    if (!stdout.write(text)) await once(stdout, "drain");
  });
  signal.addEventListener("abort", () => stdin.destroy());
  try {
    for await (const { lines } of numberedLines(stdin)) for (const line of lines) await session.take(line);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  const { subscriptions } = session;
  if (flags.wait) {
    signal.addEventListener("abort", subscriptions.leave);
    if (!signal.aborted) await subscriptions.ended();
  }
  subscriptions.leave();
  await subscriptions.ended();
}
