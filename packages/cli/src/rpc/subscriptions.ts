// Runs that are followed for the other side. Each is a loop of its own, which waits while nobody reads stdout.

import { type Endpoint, followMessages, gateway } from "@runwire/client";
import { dialects, type Facts } from "@runwire/protocol";
import { codes, errorOf, RpcError, wrongParams } from "./message.js";

export interface Subscriptions {
  /** Begins once `begin` is called: the answer with its id goes first. */
  add(run_id: string, params: Facts): Promise<Facts>;
  begin(): void;
  /** Whether there was one; nothing more is said of it. */
  remove(subscription: string): boolean;
  /** Ends all, and says so of each. */
  leave(): void;
  /** Resolves when none is left. */
  ended(): Promise<void>;
}

const subscriptionsMax = 1000;

export function subscriptionsOn(
  endpoint: Endpoint,
  /** Resolves when there is room for more. */
  write: (text: string) => Promise<void>,
): Subscriptions {
  const open = new Map<string, AbortController>();
  const loops = new Set<Promise<void>>();
  let waiting: (() => void)[] = [];
  let count = 0;

  async function follow(
    subscription: string,
    run_id: string,
    params: Facts,
    signal: AbortSignal,
  ): Promise<void> {
    const beside = `,"subscription":${JSON.stringify(subscription)}}\n`;
    const say = (data: string): string => `{"jsonrpc":"2.0","method":"event","params":${data}${beside}`;
    let close: Facts = { close: "finished" };
    try {
      for await (const messages of followMessages({ ...endpoint, run_id, ...params, signal })) {
        // What was on its way when it was unsubscribed would come after the answer that says so.
        if (signal.reason === unsubscribed) return;
        await write(messages.map(({ data }) => say(data)).join(""));
      }
    } catch (error) {
      if (signal.reason === unsubscribed) return;
      close = signal.aborted ? { close: "leaving" } : { close: "broken", error: errorOf(error) };
    } finally {
      open.delete(subscription);
    }
    const closed = { jsonrpc: "2.0", method: "closed", params: { run_id, ...close }, subscription };
    await write(`${JSON.stringify(closed)}\n`);
  }

  return {
    async add(run_id, { dialect: named = "runtime", ...params }) {
      // The frame is this session's; what it holds are the messages of that stream.
      const dialect = named === "runtime-jsonrpc" ? "runtime" : named;
      if (typeof dialect !== "string" || !dialects.has(dialect))
        throw wrongParams(`\`dialect\` must be one of ${[...dialects.keys()].join(", ")}`);
      if (params.detail !== undefined && params.detail !== "full" && params.detail !== "default")
        throw wrongParams("`detail` must be full or default");
      if (open.size >= subscriptionsMax)
        throw new RpcError(codes.refused, `a session may have ${subscriptionsMax} subscriptions`);
      await gateway(endpoint).getRun(run_id);
      const subscription = `sub_${++count}`;
      const left = new AbortController();
      open.set(subscription, left);
      waiting.push(() => {
        const loop = follow(subscription, run_id, { ...params, dialect }, left.signal);
        loops.add(loop);
        void loop.finally(() => loops.delete(loop));
      });
      return { subscription, run_id, dialect: named };
    },
    begin() {
      const begun = waiting;
      waiting = [];
      for (const start of begun) start();
    },
    remove(subscription) {
      const left = open.get(subscription);
      open.delete(subscription);
      left?.abort(unsubscribed);
      return left !== undefined;
    },
    leave() {
      for (const left of open.values()) left.abort();
    },
    async ended() {
      while (loops.size > 0) await Promise.all(loops);
    },
  };
}

const unsubscribed = new Error("unsubscribed");
