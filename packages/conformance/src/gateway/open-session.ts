// A producer's side of an append session: lines in, a line back for each commit.

import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { ndjson, runPath } from "./calls.js";

export interface Session {
  readonly response: Promise<IncomingMessage>;
  write(bytes: string | Uint8Array): void;
  end(bytes: string): void;
  /** The next line of the answer, or undefined at its end. */
  answer(): Promise<unknown>;
  destroy(): void;
}

export function openSession(
  url: string,
  run_id: string,
  headers: { readonly [name: string]: string } = {},
  dialect = "runwire",
): Session {
  const req: ClientRequest = request(url + runPath(run_id, `events?dialect=${dialect}`), {
    method: "POST",
    agent: false,
    headers: { ...ndjson, "Transfer-Encoding": "chunked", ...headers },
  });
  req.on("error", () => {});
  req.flushHeaders();
  const response = once(req, "response").then(([res]) => res as IncomingMessage);
  const answers = response.then((res) => linesOf(res));
  return {
    response,
    write: (bytes) => void req.write(bytes),
    end: (bytes) => void req.end(bytes),
    async answer() {
      const { value } = await (await answers).next();
      return value === undefined ? undefined : JSON.parse(value as string);
    },
    destroy: () => void req.destroy(),
  };
}

async function* linesOf(res: IncomingMessage): AsyncGenerator<string, undefined> {
  let rest = "";
  try {
    for await (const chunk of res.setEncoding("utf8")) {
      const parts = (rest + chunk).split("\n");
      rest = parts.pop() ?? "";
      yield* parts;
    }
  } catch {
    // A connection that broke has no more lines.
  }
  return undefined;
}
