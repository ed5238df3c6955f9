// A server for producer tests: it stores batches by producer, epoch and number as the real one must, and can
// lose an answer after it has stored.

import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** What happens to one request: stored but never answered, or answered so without storing. */
export type Mishap = "stored, then lost" | "lost" | { readonly status: number; readonly code?: string };

export interface AppendServer {
  readonly base: string;
  readonly stored: unknown[];
  /** Events of every batch that arrived, stored or not. */
  readonly batches: number[];
  heartbeats: number;
  /** Why a draft, and all that it comes with, is refused. */
  refusal: (draft: unknown) => string | undefined;
  /** What heartbeats are told. */
  state: string;
  /** Resolves at the next heartbeat. */
  nextHeartbeat(): Promise<void>;
  /** Answers nothing until it is called again. */
  hold(): () => void;
  close(): Promise<void>;
}

export async function appendServer(mishaps: Mishap[] = []): Promise<AppendServer> {
  const positions = new Map<string, { epoch: number; last_producer_seq: number }>();
  let gate = Promise.resolve();
  let beat = () => {};

  const server = createServer(async (request, response) => {
    const answer = (status: number, body: object) => response.writeHead(status).end(JSON.stringify(body));
    const refuse = (status: number, code: string) =>
      answer(status, { error: { code, message: code, retry: false } });
    const path = request.url ?? "";
    if (path.includes("/producers/")) {
      const known = positions.get(path.slice(path.lastIndexOf("/") + 1));
      return answer(200, known ?? { epoch: 0, last_producer_seq: 0 });
    }
    const body = await text(request);
    if (path.endsWith("/heartbeat")) {
      self.heartbeats += 1;
      beat();
      return answer(200, { state: self.state, lease_ms: 6000 });
    }
    const drafts = JSON.parse(body) as unknown[];
    self.batches.push(drafts.length);
    await gate;
    const mishap = mishaps.shift();
    if (mishap === "lost") return request.socket.destroy();
    if (typeof mishap === "object") {
      return mishap.code === undefined ? answer(mishap.status, {}) : refuse(mishap.status, mishap.code);
    }
    const code = drafts.map((draft) => self.refusal(draft)).find((one) => one !== undefined);
    if (code !== undefined) return refuse(409, code);
    const refusal = store(request, drafts);
    if (refusal !== undefined) return refuse(...refusal);
    if (mishap === "stored, then lost") return request.socket.destroy();
    answer(200, { first_pos: 1, last_pos: self.stored.length });
  });

  function store(request: IncomingMessage, drafts: readonly unknown[]): [number, string] | undefined {
    const header = (name: string) => String(request.headers[`producer-${name}`]);
    const epoch = Number(header("epoch"));
    const first = Number(header("seq"));
    const known = positions.get(header("id")) ?? { epoch: 0, last_producer_seq: 0 };
    if (epoch < known.epoch) return [403, "KAI-PRODUCER-FENCED-0001"];
    const last = known.last_producer_seq;
    const isGap = epoch > known.epoch ? first !== last + 1 : first > last + 1;
    if (isGap) return [409, "KAI-PRODUCER-GAP-0001"];
    self.stored.push(...drafts.slice(last + 1 - first));
    positions.set(header("id"), { epoch, last_producer_seq: Math.max(last, first + drafts.length - 1) });
    return undefined;
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const self: AppendServer = {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stored: [],
    batches: [],
    heartbeats: 0,
    refusal: () => undefined,
    state: "running",
    nextHeartbeat: () =>
      new Promise((resolve) => {
        beat = resolve;
      }),
    hold() {
      let open = () => {};
      gate = new Promise((resolve) => {
        open = resolve;
      });
      return open;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return self;
}
