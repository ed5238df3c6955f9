// What subscribers ask for over NATS: a snapshot, the messages after a number, and to append events. Each is a request to
// the server, and its answer or refusal the reply.

import { type Msg, type NatsConnection, PermissionViolationError } from "@nats-io/transport-node";
import {
  type Appended,
  backoff,
  type Clock,
  type Endpoint,
  followMessages,
  gateway,
  type MessagesPage,
  type ProducerClaim,
  wait,
} from "@runwire/client";
import {
  dialects,
  isObject,
  loom,
  loomExport,
  type Message,
  RunwireError,
  runtimeJsonRpc,
} from "@runwire/protocol";
import { runIn, type Subjects } from "./subjects.js";
import { openWork, type Turn } from "./work.js";

export interface RequestParts {
  readonly endpoint: Endpoint;
  readonly nc: NatsConnection;
  readonly prefix: string;
  readonly dialect: string;
  readonly subjects: Subjects;
  /** Whether events may be written. */
  readonly ingest: boolean;
  readonly clock: Clock;
  /** Aborts when the bridge leaves. */
  readonly signal: AbortSignal;
  say(line: string): void;
}

/** Two bridges share the work. */
const queue = "runwire";
/** Until NATS has delivered what was under way when the bridge leaves. */
const drainMsMax = 1000;
/** Beside its messages, in a reply. */
const replyBytesMax = 1024;
const messagesMax = 500;
/** Asked of the server at a time: what a reply does not hold is fetched in vain. */
const pageMax = 64;

/**
 * Until the connection is closed, or the signal aborts. What came until then is done, or said. Throws an Error with one line
 * where NATS lets nobody listen.
 */
export async function answerRequests(asked: RequestParts): Promise<void> {
  const { subjects, ingest, signal } = asked;
  const failed = new AbortController();
  const parts = { ...asked, signal: AbortSignal.any([signal, failed.signal]) };
  const serving = [
    serve(parts, subjects.asked, replay),
    // Otherwise nobody listens, and NATS says so.
    ...(ingest ? [serve(parts, subjects.written, write)] : []),
  ];
  // What one has taken is not lost with the other.
  for (const one of serving) one.catch(() => failed.abort());
  await Promise.allSettled(serving);
  await Promise.all(serving);
}

type Answer = (parts: RequestParts, run_id: string, msg: Msg, ...of: Turns) => Promise<object>;
type Turns = [turn: Turn, onAway: (error: RunwireError) => void];

/** One run's requests are answered in their order. */
async function serve(parts: RequestParts, subject: string, answer: Answer): Promise<void> {
  const { nc, prefix, clock, say, signal } = parts;
  const work = openWork({ clock, say, answer: (run_id, msg, ...of) => answer(parts, run_id, msg, ...of) });
  const subscription = nc.subscribe(subject, { queue });
  const listen = async (): Promise<void> => {
    for await (const msg of subscription) work.take(runIn(msg.subject, prefix), msg);
  };
  const listening = listen();
  /** NATS may be away, and then has nothing more to deliver. */
  const left = async (): Promise<void> => {
    await aborted(signal);
    await Promise.race([subscription.drain().then(() => listening), wait(clock, drainMsMax)]);
  };
  try {
    await Promise.race([listening, left()]);
  } catch (cause) {
    if (!(cause instanceof PermissionViolationError)) throw cause;
    throw new Error(
      `NATS does not let this account listen on ${subject}; let it, or name another with --creds`,
      {
        cause,
      },
    );
  } finally {
    await work.done();
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** `{"after":N,"limit":M}` or `{"snapshot":true,"after":N}`; the answer is `{"messages":[…],"next":N|null}`. */
function replay(parts: RequestParts, run_id: string, msg: Msg, turn: Turn): Promise<object> {
  return turn(() => replayed(parts, run_id, msg));
}

async function replayed({ endpoint, dialect, nc }: RequestParts, run_id: string, msg: Msg): Promise<object> {
  const { after, snapshot, limit = messagesMax } = askedIn(msg);
  const bytesMax = (nc.info?.max_payload ?? 1024 * 1024) - replyBytesMax;
  if (!snapshot && (await isReached(endpoint, run_id, dialect, after))) {
    const wanted = Math.min(Math.max(1, limit), messagesMax);
    const messages: unknown[] = [];
    let next: number | null = after;
    for (let bytes = 0; next !== null && messages.length < wanted && bytes <= bytesMax; ) {
      const asked = { after: next, limit: Math.min(wanted - messages.length, pageMax) };
      const page: MessagesPage = await gateway(endpoint).messages(run_id, dialect, asked);
      messages.push(...page.events);
      bytes += page.events.reduce<number>((sum, message) => sum + bytesOf(message), 0);
      next = page.next;
    }
    return fitting(messages, next, (count) => after + count, bytesMax);
  }
  // The stream says it in its dialect: the read model, or that this number is none of the log's.
  const first = await firstOf({ ...endpoint, run_id, dialect, snapshot, ...(after > 0 ? { after } : {}) });
  const opening = first.map(({ data }) => JSON.parse(data) as unknown);
  const last = first.at(-1)?.id;
  const next = last === undefined ? null : Number(last);
  return fitting(opening, next, () => next, bytesMax);
}

/** A page after a number that the run has not reached begins at the first message. */
async function isReached(
  endpoint: Endpoint,
  run_id: string,
  dialect: string,
  after: number,
): Promise<boolean> {
  if (after === 0) return true;
  // The export form has no numbers; it is counted as the other is.
  const numbered = dialect === loomExport.name ? loom.name : dialect;
  const { events } = await gateway(endpoint).messages(run_id, numbered, { after, limit: 1 });
  const number = numberIn(numbered, events[0]);
  return number === undefined || number > after;
}

/** What goes out before the events: one message, and another where it tells of a gap. */
async function firstOf(options: Parameters<typeof followMessages>[0]): Promise<readonly Message[]> {
  const left = new AbortController();
  const first: Message[] = [];
  for await (const messages of followMessages({ ...options, signal: left.signal, attemptsMax: 3 })) {
    first.push(...messages);
    const count = tellsOfGap(first[0]) ? 2 : 1;
    if (first.length >= count) return first.slice(0, count);
  }
  return first;
}

function tellsOfGap(message: Message | undefined): boolean {
  const value: unknown = JSON.parse(message?.data ?? "null");
  const said = isObject(value) && isObject(value.params) ? value.params : value;
  const payload = isObject(said) ? said.payload : undefined;
  const recovery = isObject(payload) ? payload.recovery : undefined;
  return isObject(recovery) && recovery.gapFrom !== undefined;
}

/** As many as a reply holds; `numberAfter` says where to ask on after so many. */
function fitting(
  messages: readonly unknown[],
  next: number | null,
  numberAfter: (count: number) => number | null,
  bytesMax: number,
): object {
  let bytes = 0;
  const count = messages.findIndex((message) => {
    bytes += bytesOf(message);
    return bytes > bytesMax;
  });
  if (count === -1) return { messages, next };
  if (count > 0) return { messages: messages.slice(0, count), next: numberAfter(count) };
  const refused = new RunwireError(
    "KAI-REQUEST-SIZE-0001",
    `a message of ${bytes} bytes; ask the server itself`,
  );
  return { ...refused.toJSON(), next: numberAfter(1) };
}

/** In a list, with its comma. */
function bytesOf(message: unknown): number {
  return Buffer.byteLength(JSON.stringify(message)) + 1;
}

/** The number that a message says of itself. */
function numberIn(dialect: string, message: unknown): number | undefined {
  if (!isObject(message)) return undefined;
  const cursor = dialects.get(dialect)?.cursor;
  const own = dialect === loom.name ? "event_id" : "sequence";
  // Whatever else has such a member has it from its producer.
  const inner = dialect === runtimeJsonRpc.name && isObject(message.params) ? message.params : message;
  const number = inner[typeof cursor === "string" ? cursor : own];
  return typeof number === "number" ? number : undefined;
}

function askedIn(msg: Msg): { readonly after: number; readonly snapshot: boolean; readonly limit?: number } {
  const value = msg.data.length === 0 ? {} : valueIn(msg);
  if (!isObject(value)) throw new RunwireError("KAI-REQUEST-BODY-0001", "a request is a JSON object");
  const { after = 0, snapshot = false, limit, ...others } = value;
  const wrong = (what: string): RunwireError => new RunwireError("KAI-REQUEST-BODY-0002", what);
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    throw wrong(`there is no member \`${unknown}\`; it takes after, snapshot, limit`);
  if (!Number.isSafeInteger(after) || (after as number) < 0) throw wrong("`after` must be a whole number");
  if (typeof snapshot !== "boolean") throw wrong("`snapshot` must be true or false");
  if (limit !== undefined && !Number.isSafeInteger(limit)) throw wrong("`limit` must be a whole number");
  return { after: after as number, snapshot, ...(limit === undefined ? {} : { limit: limit as number }) };
}

/** An event or an array of them. A claim in the headers makes that a repeated request stores once. */
async function write(
  { endpoint, clock }: RequestParts,
  run_id: string,
  msg: Msg,
  ...[turn, onAway]: Turns
): Promise<object> {
  const value = valueIn(msg);
  const dialect = msg.headers?.get("Runwire-Dialect") || "runwire";
  const claim = claimIn(msg);
  const append = (): Promise<Appended> =>
    gateway(endpoint).appendIn(dialect, run_id, Array.isArray(value) ? value : [value], claim);
  const pause = backoff(Math.random);
  for (;;) {
    try {
      return await turn(append);
    } catch (error) {
      // Whoever asked for an answer is told, and may ask again; for anybody else nobody but us can.
      if (msg.reply || !mayRepeat(error, claim)) throw error;
      onAway(error);
      await wait(clock, pause.nextMs());
    }
  }
}

/** Whether another try may help, and cannot store twice. */
function mayRepeat(error: unknown, claim: ProducerClaim | undefined): error is RunwireError {
  if (!(error instanceof RunwireError) || !error.row.retry) return false;
  if (error.code === "KAI-STREAM-CONN-0003") return claim !== undefined || isRefused(error);
  // These say that nothing is stored; a bug of the server says nothing, and would hold up the run for ever.
  return /^KAI-(?:LIMIT|SERVER-STORE|STREAM-LEAVING)-/.test(error.code);
}

/** Nobody listens there: nothing of the request was read. */
function isRefused({ cause }: RunwireError): boolean {
  const why = cause instanceof Error ? cause.cause : undefined;
  return isObject(why) && why.code === "ECONNREFUSED";
}

/** Whole wherever there is a part of it: whoever meant one must not be stored twice, and the server says what is missing. */
function claimIn({ headers }: Msg): ProducerClaim | undefined {
  const [id, epoch, seq] = ["Producer-Id", "Producer-Epoch", "Producer-Seq"].map(
    (name) => headers?.get(name) ?? "",
  ) as [string, string, string];
  if (id === "" && epoch === "" && seq === "") return undefined;
  return { id, epoch: Number(epoch), seq: Number(seq) };
}

function valueIn(msg: Msg): unknown {
  try {
    return msg.json();
  } catch (cause) {
    throw new RunwireError("KAI-REQUEST-BODY-0001", "it is not JSON", { cause });
  }
}
