// Every error a user can meet is one row here. Callers branch on `code`, never on text; `docs/errors.md`
// is generated from this table.

export interface ErrorRow {
  /** HTTP status before a stream has begun. */
  readonly status: number;
  /** WebSocket close code, where a connection ends because of it. A refusal with 401 or 403 is never one: it has a status. */
  readonly close?: number;
  /** gRPC status name. */
  readonly grpc: string;
  /** Whether the same request may succeed later. */
  readonly retry: boolean;
  readonly title: string;
  /** What the person who meets it can do. */
  readonly help: string;
}

export const errorTable = {
  "KAI-STREAM-CONN-0001": {
    status: 499,
    grpc: "CANCELLED",
    retry: true,
    title: "client disconnected mid-stream",
    help: "Seen in logs and metrics only. The run goes on; the client resumes with its cursor.",
  },
  "KAI-STREAM-CONN-0002": {
    status: 410,
    close: 4410,
    grpc: "OUT_OF_RANGE",
    retry: false,
    title: "replay window expired",
    help: "The run was erased or its retention has passed. It cannot be read again.",
  },
  "KAI-STREAM-CONN-0003": {
    status: 503,
    grpc: "UNAVAILABLE",
    retry: true,
    title: "server unreachable",
    help: "Told by clients: no server answered at the address. Check it, and that the server runs.",
  },
  "KAI-STREAM-CONN-0004": {
    status: 502,
    grpc: "INTERNAL",
    retry: false,
    title: "unexpected answer",
    help: "Told by clients: what answered does not speak this protocol; often a proxy, or a wrong address.",
  },
  "KAI-STREAM-PROTO-0001": {
    status: 422,
    grpc: "INVALID_ARGUMENT",
    retry: false,
    title: "malformed event",
    help: "The message names the line and the member that is wrong. Nothing of the batch was stored.",
  },
  "KAI-STREAM-PROTO-0002": {
    status: 422,
    grpc: "INVALID_ARGUMENT",
    retry: false,
    title: "unknown event type",
    help: "Send a type of PROTOCOL.md, or a vendor type `x.<vendor>.<name>`. A receiver skips it instead.",
  },
  "KAI-STREAM-BUF-0001": {
    status: 200,
    grpc: "OK",
    retry: false,
    title: "backpressure drop occurred",
    help: "This reader fell behind; the terminal event counts what it skipped. Repair from `/events`, or read with `backpressure=lossless`.",
  },
  "KAI-STREAM-PARAM-0001": {
    status: 400,
    close: 4400,
    grpc: "INVALID_ARGUMENT",
    retry: false,
    title: "bad parameter",
    help: "The message names the parameter and what it takes.",
  },
  "KAI-STREAM-FRAME-0001": {
    status: 400,
    close: 1003,
    grpc: "INVALID_ARGUMENT",
    retry: false,
    title: "binary frame",
    help: "Only text frames are spoken here.",
  },
  "KAI-STREAM-FRAME-0002": {
    status: 400,
    grpc: "INVALID_ARGUMENT",
    retry: false,
    title: "no WebSocket handshake",
    help: "The message says what is missing: a WebSocket is asked for as RFC 6455 says, with version 13.",
  },
  "KAI-STREAM-LEAVING-0001": {
    status: 503,
    close: 1012,
    grpc: "UNAVAILABLE",
    retry: true,
    title: "server is leaving",
    help: "Connect again; another server, or the next start, continues from your cursor.",
  },
  "KAI-RUN-MISSING-0001": {
    status: 404,
    close: 4404,
    grpc: "NOT_FOUND",
    retry: false,
    title: "run not found",
    help: "Check the id; `GET /v1/agent/runs` lists the runs you may see.",
  },
  "KAI-RUN-STATE-0001": {
    status: 409,
    grpc: "FAILED_PRECONDITION",
    retry: false,
    title: "the run's state forbids this",
    help: "The message says which state the run is in and what it allows.",
  },
  "KAI-RUN-ENDED-0001": {
    status: 409,
    grpc: "FAILED_PRECONDITION",
    retry: false,
    title: "the run has ended",
    help: "Nothing follows a terminal event. Start a new run, or fork this one.",
  },
  "KAI-RUN-CHILD-0001": {
    status: 422,
    grpc: "INVALID_ARGUMENT",
    retry: false,
    title: "no such live child",
    help: "`child_id` must name a live descendant of the run; spawn it first.",
  },
  "KAI-RUN-CHILD-0002": {
    status: 409,
    grpc: "FAILED_PRECONDITION",
    retry: false,
    title: "a child cannot be erased alone",
    help: "Erase its root, which the message names.",
  },
  "KAI-RUN-CHILD-0003": {
    status: 409,
    grpc: "ABORTED",
    retry: false,
    title: "child cannot be spawned",
    help: "The id is taken, the tree is 8 levels deep, or too many children live at once; the message says which.",
  },
  "KAI-RUN-REQUEST-0001": {
    status: 404,
    grpc: "NOT_FOUND",
    retry: false,
    title: "no such request",
    help: "The run never asked this; its snapshot lists what waits for an answer.",
  },
  "KAI-RUN-REQUEST-0002": {
    status: 409,
    grpc: "ABORTED",
    retry: false,
    title: "already answered otherwise",
    help: "The first answer won; the message says of which kind it was, and the log holds the whole of it.",
  },
  "KAI-RUN-REQUEST-0003": {
    status: 410,
    grpc: "OUT_OF_RANGE",
    retry: false,
    title: "the request has expired",
    help: "It was closed unanswered, when its time was over or its run ended.",
  },
  "KAI-RUN-REQUEST-0004": {
    status: 409,
    grpc: "ABORTED",
    retry: false,
    title: "request id is taken",
    help: "The run has asked under this id before, and its answer must not answer another. Give each request an id of its own.",
  },
  "KAI-RUN-POINT-0001": {
    status: 422,
    grpc: "INVALID_ARGUMENT",
    retry: false,
    title: "no such point in the run",
    help: "`at` is a number that the run has reached, of the dialect it was read from; a checkpoint is that of one of its steps. Ask `/steps` or `/snapshot`.",
  },
  "KAI-RUN-POINT-0002": {
    status: 410,
    grpc: "OUT_OF_RANGE",
    retry: false,
    title: "checkpoint is no longer kept",
    help: "Its workspace is gone, or was never this server's to keep. `/checkpoints` says which are kept; `/fork` begins another run from the same point with an empty workspace.",
  },
  "KAI-RUN-SESSION-0001": {
    status: 404,
    grpc: "NOT_FOUND",
    retry: false,
    title: "no such session",
    help: "No run of this session is kept. Check the id, and that you use the key of the tenant whose session it is.",
  },
  "KAI-RUN-TOOL-0001": {
    status: 200,
    grpc: "OK",
    retry: false,
    title: "tool call interrupted",
    help: "The run ended, or its server stopped or could not write, while the tool was running. Carried by `tool.end`; what the tool did outside is unknown.",
  },
  "KAI-RUN-TOOL-0002": {
    status: 200,
    grpc: "OK",
    retry: false,
    title: "tool call failed",
    help: "Carried by `tool.end`, whose `kind` and `message` say why; the model is told, and goes on.",
  },
  "KAI-RUN-TOOL-0003": {
    status: 422,
    grpc: "INVALID_ARGUMENT",
    retry: false,
    title: "no such tool",
    help: "`tools` takes names of tools, or beginnings of names as `file.*`. The message names the one that means nothing here, what there is, and the MCP servers that are not reached.",
  },
  "KAI-RUN-AGENT-0001": {
    status: 422,
    grpc: "INVALID_ARGUMENT",
    retry: false,
    title: "unknown agent",
    help: '`agent` says how the built-in agent goes about its task; the message lists what there is. A run that you write yourself (`"producer": "external"`) may call its agent as it likes.',
  },
  "KAI-RUN-AGENT-0002": {
    status: 409,
    grpc: "FAILED_PRECONDITION",
    retry: false,
    title: "the built-in agent writes this run",
    help: 'Events and heartbeats are for runs that were created with `"producer": "external"`. What people want of this one goes through its controls and answers.',
  },
  "KAI-RUN-APPROVAL-0001": {
    status: 404,
    grpc: "NOT_FOUND",
    retry: false,
    title: "nothing to take back",
    help: "No approval of this tool stands. `GET /v1/agent/approvals` lists those that do; name the session for one that was given for it.",
  },
  "KAI-BLOB-MISSING-0001": {
    status: 404,
    grpc: "NOT_FOUND",
    retry: false,
    title: "blob not found",
    help: "Check the ref; a blob goes when the last run that refers to it is erased.",
  },
  "KAI-BLOB-RANGE-0001": {
    status: 416,
    grpc: "OUT_OF_RANGE",
    retry: false,
    title: "range not satisfiable",
    help: "The range begins behind the blob's end; `Content-Range` tells its size.",
  },
  "KAI-PRODUCER-FENCED-0001": {
    status: 403,
    grpc: "PERMISSION_DENIED",
    retry: false,
    title: "producer fenced",
    help: "A newer epoch of this producer has written. Stop, or come back with a higher epoch.",
  },
  "KAI-PRODUCER-GAP-0001": {
    status: 409,
    grpc: "ABORTED",
    retry: false,
    title: "producer sequence gap",
    help: "Numbers go on from the last one stored, in a new epoch too; `GET …/producers/:id` tells it. Send what is missing, or number anew from there.",
  },
  "KAI-AUTH-TOKEN-0001": {
    status: 401,
    grpc: "UNAUTHENTICATED",
    retry: false,
    title: "credentials needed",
    help: "Send `Authorization: Bearer <key or token>`. `runwire keys create` makes a key.",
  },
  "KAI-AUTH-TOKEN-0002": {
    status: 401,
    grpc: "UNAUTHENTICATED",
    retry: false,
    title: "credentials refused",
    help: "The key or token is not one this server knows or trusts. Check that it was copied whole and is meant for this server.",
  },
  "KAI-AUTH-TOKEN-0003": {
    status: 401,
    close: 4401,
    grpc: "UNAUTHENTICATED",
    retry: false,
    title: "credentials have ended",
    help: "The key or token has expired or was revoked. Get a new one.",
  },
  "KAI-AUTH-SCOPE-0001": {
    status: 403,
    grpc: "PERMISSION_DENIED",
    retry: false,
    title: "scope missing",
    help: "The message names the scope this needs. Use a key or token that has it.",
  },
  "KAI-AUTH-URL-0001": {
    status: 400,
    grpc: "INVALID_ARGUMENT",
    retry: false,
    title: "credentials in the address",
    help: "Addresses end up in logs and histories. Use the `Authorization` header, or a stream ticket where headers cannot be set; replace a key that was sent this way.",
  },
  "KAI-AUTH-TICKET-0001": {
    status: 401,
    grpc: "UNAUTHENTICATED",
    retry: false,
    title: "stream ticket refused",
    help: "A ticket opens only what it was made for, is first used within a minute, and ends with its time or its credential. Ask for a new one.",
  },
  "KAI-AUTH-CSRF-0001": {
    status: 403,
    grpc: "PERMISSION_DENIED",
    retry: false,
    title: "request of another page refused",
    help: "A signed-in browser changes things only from the server's own pages or an allowed origin, with the header that the message names.",
  },
  "KAI-AUTH-JWKS-0001": {
    status: 503,
    grpc: "UNAVAILABLE",
    retry: true,
    title: "signing keys unreachable",
    help: "The server could not fetch the keys that tokens are signed with. Try again; `runwire doctor` says what is wrong with the address.",
  },
  "KAI-REQUEST-BODY-0001": {
    status: 400,
    close: 1007,
    grpc: "INVALID_ARGUMENT",
    retry: false,
    title: "malformed request body",
    help: "The body must be valid UTF-8 and the JSON that the message describes.",
  },
  "KAI-REQUEST-BODY-0002": {
    status: 422,
    grpc: "INVALID_ARGUMENT",
    retry: false,
    title: "request body refused",
    help: "The message names the member and what it takes.",
  },
  "KAI-REQUEST-SIZE-0001": {
    status: 413,
    close: 1009,
    grpc: "RESOURCE_EXHAUSTED",
    retry: false,
    title: "too large",
    help: "The message names the limit. Send less at once.",
  },
  "KAI-REQUEST-SIZE-0002": {
    status: 431,
    grpc: "RESOURCE_EXHAUSTED",
    retry: false,
    title: "headers too large",
    help: "The message names the limit. Send fewer or shorter headers.",
  },
  "KAI-REQUEST-TIME-0001": {
    status: 408,
    grpc: "DEADLINE_EXCEEDED",
    retry: true,
    title: "request took too long to arrive",
    help: "Send the whole request within the time the server gives it.",
  },
  "KAI-REQUEST-PATH-0001": {
    status: 404,
    grpc: "UNIMPLEMENTED",
    retry: false,
    title: "no such route",
    help: "PROTOCOL.md lists the routes.",
  },
  "KAI-REQUEST-METHOD-0001": {
    status: 405,
    grpc: "UNIMPLEMENTED",
    retry: false,
    title: "method not allowed",
    help: "The `Allow` header names the methods of this route.",
  },
  "KAI-REQUEST-TYPE-0001": {
    status: 415,
    grpc: "INVALID_ARGUMENT",
    retry: false,
    title: "content type not understood",
    help: "Send `application/json` or `application/x-ndjson`.",
  },
  "KAI-REQUEST-KEY-0001": {
    status: 422,
    grpc: "INVALID_ARGUMENT",
    retry: false,
    title: "Idempotency-Key was used for another request",
    help: "A key stands for one request and its repetitions. Give another request a key of its own.",
  },
  "KAI-REQUEST-HOST-0001": {
    status: 403,
    grpc: "PERMISSION_DENIED",
    retry: false,
    title: "host or origin refused",
    help: "An open server answers only requests that name it by its loopback address and come from its own pages.",
  },
  "KAI-LIMIT-RATE-0001": {
    status: 429,
    close: 4429,
    grpc: "RESOURCE_EXHAUSTED",
    retry: true,
    title: "too fast",
    help: "The message names the rate. Wait as long as `Retry-After` says; what was sent is not stored.",
  },
  "KAI-LIMIT-CONNECTIONS-0001": {
    status: 429,
    close: 4429,
    grpc: "RESOURCE_EXHAUSTED",
    retry: true,
    title: "too many connections",
    help: "Close some, put several runs on one connection, or ask the operator for more.",
  },
  "KAI-LIMIT-RUNS-0001": {
    status: 429,
    grpc: "RESOURCE_EXHAUSTED",
    retry: true,
    title: "too many live runs",
    help: "The message names the limit. Wait until some of your runs have ended, or end them.",
  },
  "KAI-LIMIT-GRANTS-0001": {
    status: 429,
    grpc: "RESOURCE_EXHAUSTED",
    retry: true,
    title: "too many tickets and sessions",
    help: "The message names the limit. Use a ticket again while it lasts, ask for shorter ones (`ttl_s`), or wait until some have ended.",
  },
  "KAI-MODEL-KEY-0001": {
    status: 422,
    grpc: "INVALID_ARGUMENT",
    retry: false,
    title: "model has no key",
    help: "The message names the variable that is not set. Set it where the server starts, or ask for another model.",
  },
  "KAI-MODEL-PRICE-0001": {
    status: 422,
    grpc: "INVALID_ARGUMENT",
    retry: false,
    title: "model has no known price",
    help: "A budget can be kept only with models whose prices are known. Ask for one of those, or leave `budget_usd` out.",
  },
  "KAI-MODEL-NAME-0001": {
    status: 422,
    grpc: "INVALID_ARGUMENT",
    retry: false,
    title: "unknown model",
    help: "Name a model as `anthropic/<name>`, `openai/<name>` or `local/<name>`, or ask for `demo`.",
  },
  "KAI-SERVER-BUG-0001": {
    status: 500,
    close: 1011,
    grpc: "INTERNAL",
    retry: true,
    title: "internal error",
    help: "A bug. Report the request id; the server's log has the rest.",
  },
  "KAI-SERVER-STORE-0001": {
    status: 503,
    close: 1013,
    grpc: "UNAVAILABLE",
    retry: true,
    title: "store unavailable",
    help: "Try again, under the same producer numbers or idempotency key if you have them: nothing was stored, unless the disk failed in the middle of it. The server's log says why.",
  },
  "KAI-SERVER-STORE-0002": {
    status: 507,
    grpc: "RESOURCE_EXHAUSTED",
    retry: true,
    title: "storage full",
    help: "Nothing was stored; reading goes on. Free some space and try again.",
  },
  "KAI-SERVER-STORE-0003": {
    status: 500,
    close: 1011,
    grpc: "INTERNAL",
    retry: false,
    title: "stored data is damaged",
    help: "The disk gave back other bytes than it got. Nothing wrong is shown; restore the data folder from a copy.",
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errorTable;

/** What travels: `{"error":{"code","message","retry"}}`. */
export interface ErrorBody {
  readonly error: { readonly code: ErrorCode; readonly message: string; readonly retry: boolean };
}

export class RunwireError extends Error {
  readonly code: ErrorCode;

  /** `detail` holds the facts needed to act, no payloads and no secrets. */
  constructor(code: ErrorCode, detail?: string, options?: ErrorOptions) {
    const { title } = errorTable[code];
    super(detail === undefined ? title : `${title}: ${detail}`, options);
    this.name = "RunwireError";
    this.code = code;
  }

  get row(): ErrorRow {
    return errorTable[this.code];
  }

  /** The same error, with where it was met in front of its detail. */
  at(where: string): RunwireError {
    const detail = this.message.slice(this.row.title.length).replace(/^: /, "");
    return new RunwireError(this.code, detail === "" ? where : `${where}: ${detail}`, { cause: this });
  }

  toJSON(): ErrorBody {
    return { error: { code: this.code, message: this.message, retry: this.row.retry } };
  }
}

/** A message, or a log, that is not what its wire says. */
export function malformed(what: string): RunwireError {
  return new RunwireError("KAI-STREAM-PROTO-0001", what);
}

/** What whatever was thrown says. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(errorTable, value);
}
