// The connection to NATS: opened with patience, opened again by the library, and always known whether it stands.

import { readFileSync } from "node:fs";
import {
  AuthorizationError,
  connect,
  credsAuthenticator,
  type NatsConnection,
  type NodeConnectionOptions,
} from "@nats-io/transport-node";
import { backoff, systemClock, wait } from "@runwire/client";
import { messageOf } from "@runwire/protocol";

export interface NatsFlags {
  readonly nats: string;
  readonly creds?: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly certKey?: string;
}

export interface Connected {
  readonly nc: NatsConnection;
  /** Resolves when the connection stands, at once if it does. */
  up(): Promise<void>;
}

const connectMsMax = 2000;

/** Throws an Error with one line where trying again cannot help: credentials, files, an address that is none. */
export async function connectNats(
  flags: NatsFlags,
  say: (line: string) => void,
  signal: AbortSignal,
): Promise<Connected> {
  const options: NodeConnectionOptions = {
    ...optionsOf(flags),
    ...(flags.creds === undefined
      ? {}
      : { authenticator: credsAuthenticator(fileOf("--creds", flags.creds)) }),
    name: "runwire",
    timeout: connectMsMax,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 500,
    reconnectJitter: 500,
    ignoreAuthErrorAbort: true,
  };
  const name = shownUrl(flags.nats);
  const pause = backoff(Math.random);
  for (;;) {
    try {
      const nc = await connect(options);
      say(`connected to NATS ${nc.info?.version ?? ""} at ${name}`);
      return watched(nc, name, say);
    } catch (error) {
      if (error instanceof AuthorizationError)
        throw new Error(`NATS at ${name} refuses these credentials; check RUNWIRE_NATS, --creds and --cert`);
      const why = messageOf(error);
      say(
        `NATS at ${name} cannot be reached (${why === "timeout" ? "it does not speak NATS, or too slowly" : why}); trying again in ${pause.ceilingMs / 1000} s at most`,
      );
      await wait(systemClock, pause.nextMs(), signal);
    }
  }
}

function optionsOf({ nats, ca, cert, certKey }: NatsFlags): NodeConnectionOptions {
  const url = parsed(nats);
  const [user, pass] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
  const hasTls = url.protocol === "tls:" || ca !== undefined || cert !== undefined;
  return {
    servers: url.host,
    ...(user === "" ? {} : pass === "" ? { token: user } : { user, pass }),
    ...(hasTls
      ? {
          tls: {
            ...(ca === undefined ? {} : { ca: fileText("--ca", ca) }),
            ...(cert === undefined ? {} : { cert: fileText("--cert", cert) }),
            ...(certKey === undefined ? {} : { key: fileText("--cert-key", certKey) }),
          },
        }
      : {}),
  };
}

function parsed(nats: string): URL {
  const url = URL.canParse(nats) ? new URL(nats) : undefined;
  // What was given is not said again: it may hold a password.
  if (url === undefined || !/^(?:nats|tls):$/.test(url.protocol) || url.hostname === "")
    throw new Error(
      "--nats: that is not possible; it takes an address as nats://127.0.0.1:4222 or tls://host:4222",
    );
  return url;
}

function shownUrl(nats: string): string {
  const { protocol, host } = new URL(nats);
  return `${protocol}//${host}`;
}

function fileOf(flag: string, path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new Error(`${flag}: ${(cause as Error).message}`, { cause });
  }
}

function fileText(flag: string, path: string): string {
  return new TextDecoder().decode(fileOf(flag, path));
}

function watched(nc: NatsConnection, name: string, say: (line: string) => void): Connected {
  let isUp = true;
  let wake = (): void => {};
  let standing: Promise<void> = Promise.resolve();
  const watch = async (): Promise<void> => {
    for await (const status of nc.status()) {
      if (status.type === "disconnect" && isUp) {
        isUp = false;
        standing = new Promise((resolve) => {
          wake = resolve;
        });
        say(`NATS at ${name} is gone; what is said meanwhile is published when it is back`);
      } else if (status.type === "reconnect" && !isUp) {
        isUp = true;
        say(`NATS at ${name} is back`);
        wake();
      } else if (status.type === "error") say(`NATS says: ${status.error.message}`);
    }
  };
  void watch();
  return { nc, up: () => standing };
}
