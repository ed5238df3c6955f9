// Accounts for requests: each has an id that its answer carries, and leaves one line in the log and its place in the
// metrics when it is over. The path and the query are in neither: they may hold anything.

import type { IncomingMessage, ServerResponse } from "node:http";
import { idSource, type RunwireError } from "@runwire/protocol";
import type { Caller } from "../auth/caller.js";
import type { Clock } from "../clock.js";
import type { Metrics } from "../metrics.js";
import type { Report } from "../report.js";
import { streamOf, whenClosed } from "./closing.js";

export interface Account {
  readonly requestId: string;
  /** The pattern of the route, once it is found. */
  route: string | undefined;
  /** Who asks, once that is known. */
  caller: Caller | undefined;
  /** Answers for as long as its client listens: how long that took says nothing of the server. */
  isStream: boolean;
  refused(error: RunwireError): void;
}

export interface Accounts {
  /** A request that is answered with a response; `over` is called when that is done. */
  request(req: IncomingMessage, res: ServerResponse, over: () => void): Account;
  /** A request to become a WebSocket, which is over when that is decided. */
  upgrade(req: IncomingMessage): Account & { accepted(): void };
  /** What could not be read as a request. */
  unreadable(error: RunwireError): string;
}

export const requestIdHeader = "Runwire-Request-Id";
const givenId = /^[A-Za-z0-9._-]{1,64}$/;
/** The client went away before it was answered. */
const gone = 499;

export function accounts({
  clock,
  metrics,
  report,
}: {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly report: Report;
}): Accounts {
  const ids = idSource(Math.random);
  const freshId = (): string => ids.next("req", clock.now());

  function idOf({ headers }: IncomingMessage): string {
    const given = headers["x-request-id"];
    return typeof given === "string" && givenId.test(given) ? given : freshId();
  }

  interface Open extends Account {
    over(status: number, bytes?: number): void;
  }

  function open(req: IncomingMessage): Open {
    const requestId = idOf(req);
    const beganMs = clock.monotonic();
    let code: string | undefined;
    const account: Open = {
      requestId,
      route: undefined,
      caller: undefined,
      isStream: false,
      refused(error) {
        code = error.code;
        metrics.refused(error.code);
      },
      over(status, bytes) {
        const { route, caller, isStream } = account;
        const method = req.method ?? "";
        const ms = clock.monotonic() - beganMs;
        const isTimed = !isStream || status >= 400;
        metrics.requestAnswered({ route, method, status }, isTimed ? ms : undefined);
        report("info", "request", () => ({
          request_id: requestId,
          method,
          route: route ?? null,
          status,
          ms: Math.round(ms * 100) / 100,
          ...(bytes === undefined ? {} : { bytes }),
          ...(code === undefined ? {} : { code }),
          ...(caller === undefined ? {} : { tenant: caller.tenant, credential: caller.credential }),
        }));
      },
    };
    return account;
  }

  return {
    request(req, res, over) {
      const account = open(req);
      const { socket } = req;
      // Over HTTP/2 a connection is that of many, and counts for all of them together.
      const isShared = streamOf(res) !== undefined;
      let before = socket.bytesWritten;
      // One that came before its turn has no socket yet; what goes out until then is another's.
      if (res.socket === null) {
        res.once("socket", () => {
          before = socket.bytesWritten;
        });
      }
      whenClosed(res, () => {
        const bytes = isShared ? undefined : socket.bytesWritten - before;
        account.over(res.headersSent ? res.statusCode : gone, bytes);
        over();
      });
      return account;
    },

    upgrade(req) {
      const account = open(req);
      const { refused } = account;
      account.isStream = true;
      return Object.assign(account, {
        accepted() {
          metrics.socketUpgraded("accepted");
          account.over(101, 0);
        },
        refused(error: RunwireError) {
          refused(error);
          metrics.socketUpgraded("refused");
          account.over(error.row.status, 0);
        },
      });
    },

    unreadable(error) {
      metrics.refused(error.code);
      return freshId();
    },
  };
}
