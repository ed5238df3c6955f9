// Whether JetStream keeps what is published, and the bridge's own place in it for its checkpoint.

import { JetStreamApiCodes, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { headers } from "@nats-io/transport-node";
import { isObject, timeOf, ulidOf } from "@runwire/protocol";
import { codeOf, type Patience, type PatienceParts, patience } from "./patience.js";
import { corePublisher, jetStreamPublisher, type Publisher } from "./publisher.js";
import type { BridgeParts, Checkpoint } from "./runs.js";
import type { Subjects } from "./subjects.js";

export interface Kept extends Pick<BridgeParts, "load" | "save"> {
  readonly publisher: Publisher;
  /** Where the messages are kept; undefined where they are not. */
  readonly stream: string | undefined;
}

export interface KeepOptions extends PatienceParts {
  readonly prefix: string;
  readonly subjects: Subjects;
  /** The stream that is to keep them, made where it is not there; without a name, the one that does. */
  readonly stream: string | undefined;
}

const askMsMax = 5000;

export async function keptBy(options: KeepOptions): Promise<Kept> {
  const { prefix, subjects, connected } = options;
  const parts = { ...options, makeHeaders: headers };
  const patiently = patience(options);
  const jsm = await managerOf(options, patiently);
  const own = `${prefix.replaceAll(".", "_")}_bridge`;
  const ensure = async (): Promise<void> => {
    if (jsm === undefined) return;
    if (options.stream !== undefined) await makeStream(jsm, options.stream, [`${prefix}.events.>`]);
    await makeStream(jsm, own, [`${prefix}.bridge.>`], { max_msgs_per_subject: 1 });
  };
  const stream = jsm === undefined ? undefined : await streamOf(jsm, options, patiently, ensure);
  if (jsm === undefined || stream === undefined)
    return {
      publisher: corePublisher(parts),
      stream: undefined,
      load: async () => undefined,
      save: async () => {},
    };
  const js = jetstream(connected.nc, { timeout: askMsMax });
  return {
    publisher: jetStreamPublisher({ ...parts, js, jsm, stream, ensure }),
    stream,
    load: () =>
      patiently(
        "the checkpoint",
        async () => {
          const held = await jsm.streams.getMessage(own, { last_by_subj: subjects.checkpoint });
          return held === null ? undefined : checkpointIn(held.json());
        },
        () => false,
      ),
    save: (checkpoint) =>
      patiently(
        "the checkpoint",
        async () => {
          const bytesMax = connected.nc.info?.max_payload ?? 1024 * 1024;
          const text = checkpointText(checkpoint(), bytesMax);
          await js.publish(subjects.checkpoint, text).catch(async (error: unknown) => {
            await ensure().catch(() => {});
            throw error;
          });
        },
        () => false,
      ),
  };
}

/** Undefined where this server or account has no JetStream, unless it was asked for. */
async function managerOf(options: KeepOptions, patiently: Patience): Promise<JetStreamManager | undefined> {
  const hasNone = (error: unknown): boolean =>
    (error instanceof Error && error.name === "JetStreamNotEnabled") ||
    codeOf(error) === JetStreamApiCodes.JetStreamNotEnabledForAccount;
  const open = (): Promise<JetStreamManager> => jetstreamManager(options.connected.nc, { timeout: askMsMax });
  try {
    return await patiently("JetStream", open, hasNone);
  } catch (error) {
    if (!hasNone(error)) throw error;
    if (options.stream === undefined) return undefined;
    throw new Error("--stream: this NATS has no JetStream; start it with -js, or leave the stream out");
  }
}

/** The stream that keeps the events, and the one of the checkpoint beside it. */
async function streamOf(
  jsm: JetStreamManager,
  { subjects, stream, prefix }: KeepOptions,
  patiently: Patience,
  ensure: () => Promise<void>,
): Promise<string | undefined> {
  const isRefusal = (error: unknown): boolean => typeof codeOf(error) === "number";
  const find = (): Promise<string | undefined> =>
    jsm.streams.find(subjects.allEvents).catch((error: unknown) => {
      if (codeOf(error) === JetStreamApiCodes.StreamNotFound) return undefined;
      throw error;
    });
  const work = async (): Promise<string | undefined> => {
    if (stream !== undefined) await ensure();
    const found = await find();
    if (found !== undefined) await ensure();
    return found;
  };
  const found = await patiently("JetStream", work, isRefusal).catch((error: unknown) => {
    if (!isRefusal(error)) throw error;
    // One that captures requests would answer them, too.
    throw new Error(
      `JetStream refuses a stream that is needed (${(error as Error).message}); let no other capture more than ${prefix}.events.>`,
      { cause: error },
    );
  });
  if (stream !== undefined && found !== stream)
    throw new Error(`--stream: ${stream} does not keep ${subjects.allEvents}; let it, or name another`);
  return found;
}

async function makeStream(
  jsm: JetStreamManager,
  name: string,
  subjects: string[],
  more: object = {},
): Promise<void> {
  const isThere = await jsm.streams.info(name).then(
    () => true,
    (error: unknown) => {
      if (codeOf(error) === JetStreamApiCodes.StreamNotFound) return false;
      throw error;
    },
  );
  if (!isThere) await jsm.streams.add({ name, subjects, storage: "file", ...more });
}

/**
 * More runs than a message holds are not named: the next start begins anew with the feed, or where that is no longer
 * whole, with the list, back to the oldest of them.
 */
function checkpointText(checkpoint: Checkpoint, bytesMax: number): string {
  const text = JSON.stringify(checkpoint);
  if (Buffer.byteLength(text) <= bytesMax) return text;
  const sinceMs = checkpoint.runs.reduce(
    (ms, run_id) => Math.min(ms, begunMs(run_id)),
    Date.parse(checkpoint.ts),
  );
  return JSON.stringify({ pos: 0, runs: [], ts: new Date(sinceMs).toISOString() } satisfies Checkpoint);
}

/** A root's id is the server's, and tells when it was given. */
function begunMs(run_id: string): number {
  const ulid = ulidOf(run_id);
  return ulid === undefined ? 0 : timeOf(ulid);
}

function checkpointIn(value: unknown): Checkpoint | undefined {
  if (!isObject(value)) return undefined;
  const { pos, runs, ts } = value;
  if (typeof pos !== "number" || !Array.isArray(runs) || typeof ts !== "string") return undefined;
  return { pos, runs: runs.filter((run) => typeof run === "string"), ts };
}
