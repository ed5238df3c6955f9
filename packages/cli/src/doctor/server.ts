// Whether a server has the data, whether one answers at the address, and whether they are the same.

import { get as getHttp } from "node:http";
import { get as getHttps } from "node:https";
import { createServer } from "node:net";
import { join } from "node:path";
import { messageOf } from "@runwire/protocol";
import { isLocked } from "@runwire/server/operate";
import { type Check, doubtful, type Facts, type Finding, right, wrong } from "./finding.js";

const answerMs = 3000;
const answerBytesMax = 64 * 1024;

type Answer =
  | { readonly kind: "ours"; readonly status: string; readonly durability: string }
  | { readonly kind: "other" }
  | { readonly kind: "none" };

const unready: { readonly [status: string]: string } = {
  degraded: "make room on its disk; until then appends are refused or soon will be",
  broken: "look at its log for what the disk said, and start it again",
  leaving: "it is being stopped; start it again",
};

export const server: Check = async (facts) => {
  const { dataFolder, port } = facts.settings;
  let hasLock: boolean;
  try {
    hasLock = isLocked(join(dataFolder, "runwire.db"));
  } catch (error) {
    const todo = "make the data folder's files readable for the user that runs the server";
    return [wrong("server", `whether one has the data cannot be told (${messageOf(error)})`, todo)];
  }
  // A free port is picked at the start, and nobody can tell which it was.
  if (port === 0)
    return [right("server", hasLock ? "one has the data folder" : "none runs on the data folder")];
  const url = addressOf(facts);
  return judgeServer({ hasLock, url, port, answer: await ask(url), portProblem: await portProblem(facts) });
};

export function judgeServer(seen: {
  readonly hasLock: boolean;
  readonly url: string;
  readonly port: number;
  readonly answer: Answer;
  readonly portProblem: string | undefined;
}): readonly Finding[] {
  const { hasLock, url, port, answer, portProblem } = seen;
  if (answer.kind === "ours" && !hasLock) {
    const says = `the server at ${url} has another data folder`;
    return [doubtful("server", says, "give that server's --data, or choose another --port for this one")];
  }
  if (answer.kind === "ours") {
    const says = `answers at ${url}, ${answer.status}, durability ${answer.durability}`;
    if (answer.status !== "ready")
      return [doubtful("server", says, unready[answer.status] ?? "look at its log")];
    if (answer.durability === "fsync") return [right("server", says)];
    const todo = "set --durability fsync, unless a power cut may take the last moments of every run";
    return [doubtful("server", says, todo)];
  }
  if (hasLock) {
    const says = `one has the data folder, but none answers at ${url}`;
    return [doubtful("server", says, "give its --host and --port here; if they are right, look at its log")];
  }
  const none = right("server", "none runs on the data folder");
  if (answer.kind === "other") {
    const says = `port ${port} is taken by another program`;
    return [none, wrong("port", says, "choose another with --port, or 0 for a free one")];
  }
  if (portProblem === undefined) return [none, right("port", `${port} is free`)];
  const todo = "choose another with --port, or another --host";
  return [none, wrong("port", `${port} cannot be listened on (${portProblem})`, todo)];
}

function addressOf({ settings }: Facts): string {
  const { host, port } = settings;
  const scheme = settings.tlsCert === null ? "http" : "https";
  // Who listens everywhere answers on loopback too.
  const reached = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `${scheme}://${reached.includes(":") ? `[${reached}]` : reached}:${port}`;
}

function ask(url: string): Promise<Answer> {
  return new Promise((resolve) => {
    // Nothing secret is sent, so it does not matter who signed the certificate.
    const options = { timeout: answerMs, rejectUnauthorized: false, agent: false };
    const get = url.startsWith("https:") ? getHttps : getHttp;
    const request = get(`${url}/readyz`, options, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
        if (text.length > answerBytesMax) response.destroy();
      });
      response.on("close", () => resolve(parseAnswer(text)));
      // Cut off is not ours either.
      response.on("error", () => resolve({ kind: "other" }));
    });
    request.on("timeout", () => request.destroy(new Error("no answer in time")));
    request.on("error", (error: NodeJS.ErrnoException) =>
      resolve({ kind: error.code === "ECONNREFUSED" || error.code === "ENOTFOUND" ? "none" : "other" }),
    );
  });
}

function parseAnswer(text: string): Answer {
  try {
    const { status, durability } = JSON.parse(text) as { readonly [member: string]: unknown };
    if (typeof status === "string" && typeof durability === "string") {
      return { kind: "ours", status, durability };
    }
  } catch {
    // Whatever it says, it is not a server of ours.
  }
  return { kind: "other" };
}

function portProblem({ settings: { host, port } }: Facts): Promise<string | undefined> {
  return new Promise((resolve) => {
    const listener = createServer();
    listener.once("error", (error: Error) => resolve(error.message));
    listener.listen({ host, port, exclusive: true }, () => listener.close(() => resolve(undefined)));
  });
}
