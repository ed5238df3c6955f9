// Accounts for requests: each has an id that its answer carries, and leaves one line in the log and its place in the
// metrics when it is over. The path and the query are in neither: they may hold anything.

import type { IncomingMessage, ServerResponse } from "node:http";
import { idSource, type RunwireError } from "@runwire/protocol";
import type { Clock } from "../clock.js";
import type { Metrics } from "../metrics.js";
import type { Report } from "../report.js";

export interface Account {
  readonly requestId: string;
  /** What the gate has found out; later facts replace earlier ones. */
  note(facts: Noted): void;
  refused(error: RunwireError): void;
}

export interface Noted {
  /** The route's pattern. */
  readonly route?: string;
  readonly tenant?: string;
  /** The credential's id, never the credential. */
  readonly credential?: string;
}

export interface Accounts {
  /** A request that is answered with a response. */
  request(req: IncomingMessage, res: ServerResponse): Account;
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

  function open(
    req: IncomingMessage,
  ): Account & { over(status: number, bytes: number, timed: boolean): void } {
    const requestId = idOf(req);
    const beganMs = clock.monotonic();
    const method = req.method ?? "";
    let noted: Noted = {};
    let code: string | undefined;
    return {
      requestId,
      note(facts) {
        noted = { ...noted, ...facts };
      },
      refused(error) {
        code = error.code;
        metrics.refused(error.code);
      },
      over(status, bytes, timed) {
        const ms = clock.monotonic() - beganMs;
        metrics.requestAnswered({ route: noted.route, method, status }, timed ? ms : undefined);
        const { route = null, ...who } = noted;
        const facts = { request_id: requestId, method, route, status, ms: Math.round(ms * 100) / 100, bytes };
        report("info", "request", { ...facts, ...(code === undefined ? {} : { code }), ...who });
      },
    };
  }

  return {
    request(req, res) {
      const account = open(req);
      const { socket } = req;
      res.setHeader(requestIdHeader, account.requestId);
      let before = socket.bytesWritten;
      // One that came before its turn has no socket yet; what goes out until then is another's.
      if (res.socket === null) {
        res.once("socket", () => {
          before = socket.bytesWritten;
        });
      }
      res.once("close", () => {
        const status = res.headersSent ? res.statusCode : gone;
        // A stream has no length.
        const timed = status !== 200 || res.hasHeader("Content-Length");
        account.over(status, socket.bytesWritten - before, timed);
      });
      return account;
    },

    upgrade(req) {
      const { over, ...account } = open(req);
      return {
        ...account,
        accepted() {
          metrics.socketUpgraded("accepted");
          over(101, 0, false);
        },
        refused(error) {
          account.refused(error);
          metrics.socketUpgraded("refused");
          over(error.row.status, 0, false);
        },
      };
    },

    unreadable(error) {
      metrics.refused(error.code);
      return freshId();
    },
  };
}
