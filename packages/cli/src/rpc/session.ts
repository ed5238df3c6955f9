// One session: lines are obeyed one after the other and answered in their order. A line that is wrong is answered, and the
// session goes on.

import type { Endpoint } from "@runwire/client";
import type { NumberedLine } from "../wires/numbered-lines.js";
import { type Answer, answered, codes, idIn, RpcError, refused, requestIn } from "./message.js";
import { type Method, methodsOf } from "./methods.js";
import { checkedParams } from "./params.js";
import { type Subscriptions, subscriptionsOn } from "./subscriptions.js";

export interface Session {
  readonly subscriptions: Pick<Subscriptions, "leave" | "ended">;
  take(line: NumberedLine): Promise<void>;
}

const batchMax = 1000;

export function rpcSession(endpoint: Endpoint, write: (text: string) => Promise<void>): Session {
  const subscriptions = subscriptionsOn(endpoint, write);
  const methods = methodsOf(endpoint, subscriptions);

  async function answer(line: NumberedLine): Promise<Answer | readonly Answer[] | undefined> {
    const value = parsed(line);
    if (!("given" in value)) return refused(null, value.error);
    const { given } = value;
    if (!Array.isArray(given)) return answerOne(methods, given);
    if (given.length === 0 || given.length > batchMax)
      return refused(
        null,
        new RpcError(codes.request, `Invalid Request: a batch has 1 to ${batchMax} requests`),
      );
    const answers: Answer[] = [];
    for (const one of given) {
      const said = await answerOne(methods, one);
      if (said !== undefined) answers.push(said);
    }
    return answers.length === 0 ? undefined : answers;
  }

  return {
    subscriptions,
    async take(line) {
      const said = await answer(line);
      if (said !== undefined) await write(`${JSON.stringify(said)}\n`);
      subscriptions.begin();
    },
  };
}

function parsed(line: NumberedLine): { readonly given: unknown } | { readonly error: RpcError } {
  if ("error" in line) {
    const { code, message } = line.error;
    return { error: new RpcError(codes.parse, `Parse error: ${message}`, { code, line: line.number }) };
  }
  try {
    return { given: JSON.parse(line.text) as unknown };
  } catch {
    return { error: new RpcError(codes.parse, "Parse error: not JSON", { line: line.number }) };
  }
}

/** Nothing for a notification. */
async function answerOne(methods: ReadonlyMap<string, Method>, value: unknown): Promise<Answer | undefined> {
  let isAsked = true;
  try {
    const { id, method: name, params } = requestIn(value);
    isAsked = id !== undefined;
    const method = methods.get(name);
    if (method === undefined)
      throw new RpcError(codes.method, `Method not found; there is ${[...methods.keys()].join(", ")}`);
    const result = await method.call(checkedParams(method.takes, params));
    return isAsked ? answered(id ?? null, result) : undefined;
  } catch (error) {
    return isAsked ? refused(idIn(value), error) : undefined;
  }
}
