// `runwire nats`: the runs of a server on NATS subjects.

import { runtime } from "@runwire/protocol";
import { type Command, Option } from "commander";
import { addServerOptions, reach, type ServerFlags } from "./server-flags.js";
import { dialectOption } from "./wires/dialect-flags.js";

interface Flags extends ServerFlags {
  readonly nats: string;
  readonly creds?: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly certKey?: string;
  readonly dialect: string;
  readonly prefix: string;
  readonly stream?: string;
  readonly ingest?: boolean;
}

export function addNats(program: Command): void {
  const nats = program
    .command("nats")
    .description("publish runs on NATS subjects, and answer who missed some")
    .addOption(
      new Option(
        "--nats <url>",
        "NATS, as nats://host:4222 or tls://host:4222; with user:password@ or token@",
      )
        .env("RUNWIRE_NATS")
        .default("nats://127.0.0.1:4222"),
    )
    .addOption(new Option("--creds <file>", "a credentials file of NATS").env("RUNWIRE_NATS_CREDS"))
    .option("--ca <file>", "the certificate authority of NATS, for TLS")
    .option("--cert <file>", "a client certificate, for TLS")
    .option("--cert-key <file>", "its key")
    .addOption(dialectOption("--dialect <name>", "how messages are said").default(runtime.name))
    .option("--prefix <subject>", "what all subjects begin with", "runwire")
    .option("--stream <name>", "the JetStream stream that keeps them, made where it is not there")
    .option("--ingest", "take events to append from <prefix>.in.<tenant>.<run>");
  addServerOptions(nats).addHelpText(
    "after",
    "\nExamples:\n  runwire nats --nats nats://127.0.0.1:4222 --stream RUNS\n  nats sub 'runwire.events.default.*.runtime'\n\nSubjects: <prefix>.events.<tenant>.<run>.<dialect>, and <prefix>.ask.… for requests.\nIt goes on until it is told to leave; what NATS or the server miss meanwhile is made up for.",
  );
  nats.action((flags: Flags) =>
    reach(flags, async (endpoint) => {
      if (!/^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/.test(flags.prefix))
        throw new Error(
          "--prefix: that is not possible; it takes letters, digits, - and _, with dots between",
        );
      const left = new AbortController();
      for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => left.abort());
      const say = (line: string): void => void process.stderr.write(`runwire: ${line}\n`);
      // Here, because every other command starts quicker without it.
      const { bridge } = await import("./nats/bridge.js");
      await bridge(endpoint, {
        ...flags,
        stream: flags.stream,
        ingest: flags.ingest ?? false,
        signal: left.signal,
        say,
        ready: (line) => void process.stdout.write(`${line}\n`),
      }).catch((error: unknown) => {
        if (!left.signal.aborted) throw error;
      });
      // What never became a connection may still hold a socket.
      process.exit(0);
    }),
  );
}
