// Orders to a run: pause, resume, redirect, steer, abort.

import { type Gateway, gateway, type Ordered } from "@runwire/client";
import type { Command } from "commander";
import { addServerOptions, reach, type ServerFlags } from "./server-flags.js";

interface Order {
  readonly does: string;
  /** Its text, where it has one. */
  readonly text?: string;
  readonly example: string;
  give(server: Gateway, run_id: string, text: string): Promise<Ordered>;
}

const orders: { readonly [name: string]: Order } = {
  pause: {
    does: "let a run finish what it is doing, and then wait",
    example: "pause run_01HZ7K3M000000000000000000",
    give: (server, run_id) => server.pause(run_id),
  },
  resume: {
    does: "let a paused run go on",
    example: "resume run_01HZ7K3M000000000000000000",
    give: (server, run_id) => server.resume(run_id),
  },
  steer: {
    does: "say something to a run; it hears it at its next step",
    text: "what to say",
    example: 'steer run_01HZ7K3M000000000000000000 "only the free ones, please"',
    give: (server, run_id, text) => server.steer(run_id, text),
  },
  redirect: {
    does: "stop what a run is doing and give it another direction",
    text: "what to do instead",
    example: 'redirect run_01HZ7K3M000000000000000000 "compare two of them, in depth"',
    give: (server, run_id, text) => server.redirect(run_id, text),
  },
};

export function addOrders(program: Command): void {
  for (const [name, { does, text, example, give }] of Object.entries(orders)) {
    const command = program.command(name).description(does).argument("<run>", "its id");
    if (text !== undefined) command.argument("<text>", text);
    addServerOptions(command).addHelpText("after", `\nExample:\n  runwire ${example}`);
    command.action((run_id: string, ...given: readonly unknown[]) => {
      const flags = given[text === undefined ? 0 : 1] as ServerFlags;
      const words = text === undefined ? "" : String(given[0]);
      return reach(flags, async (endpoint) => tell(await give(gateway(endpoint), run_id, words)));
    });
  }
  const abort = program
    .command("abort")
    .description("end a run, with its children, for good")
    .argument("<run>", "its id")
    .option("--reason <text>", "why, for those who read it later");
  addServerOptions(abort).addHelpText(
    "after",
    '\nExample:\n  runwire abort run_01HZ7K3M000000000000000000 --reason "found it myself"',
  );
  abort.action((run_id: string, flags: ServerFlags & { readonly reason?: string }) =>
    reach(flags, async (endpoint) => tell(await gateway(endpoint).abort(run_id, flags.reason))),
  );
}

function tell({ run_id, state }: Ordered): void {
  process.stdout.write(`${run_id} is ${state.replace("_", " ")}\n`);
}
