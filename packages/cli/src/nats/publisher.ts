// Publishing the messages of one run, in order. Where JetStream captures the subject, what it holds is the cursor: the
// number of the last message there, and each message is stored only after the one before it. So whoever publishes again,
// after a kill or beside another bridge, can neither leave one out nor put one in twice.

import { createHash } from "node:crypto";
import { JetStreamApiCodes, type JetStreamClient, type JetStreamManager } from "@nats-io/jetstream";
import type { MsgHdrs } from "@nats-io/transport-node";
import { isObject, type Message } from "@runwire/protocol";
import { codeOf, type PatienceParts, patience } from "./patience.js";

export interface Publisher {
  /** Where a run goes on; undefined where nothing of it is kept. */
  open(run_id: string, subject: string): Promise<RunPublisher>;
}

export interface RunPublisher {
  readonly after: string | undefined;
  /** Resolves when NATS has them. Throws Overtaken where the subject has gone on without us. */
  publish(messages: readonly Message[]): Promise<void>;
}

/** What the stream holds is not what was published last: reading goes on from there. */
export class Overtaken extends Error {}

const headerNames = {
  sequence: "Runwire-Sequence",
  event: "Runwire-Event-Id",
  leftOut: "Runwire-Left-Out",
};

const ackMsMax = 5000;
/** Of the headers that go with a message. */
const headerBytesMax = 4096;

export interface PublisherParts extends PatienceParts {
  readonly makeHeaders: () => MsgHdrs;
}

/** A message as it goes out. */
interface Outgoing {
  readonly id: string;
  readonly data: string;
  readonly headers: MsgHdrs;
  /** The same wherever the same is published, and another for another log's message of this number. */
  readonly msgID: string;
}

function outgoing(
  { connected, makeHeaders, say }: PublisherParts,
  run_id: string,
  subject: string,
): (message: Message) => Outgoing {
  return ({ id = "", data }) => {
    const headers = makeHeaders();
    const hash = createHash("sha256").update(data).digest("hex").slice(0, 16);
    const msgID = `${subject}/${id}/${hash}`;
    headers.set("Nats-Msg-Id", msgID);
    headers.set(headerNames.sequence, id);
    const event = eventIdIn(data);
    if (event !== undefined) headers.set(headerNames.event, event);
    const bytes = Buffer.byteLength(data);
    const bytesMax = (connected.nc.info?.max_payload ?? 1024 * 1024) - headerBytesMax;
    if (bytes <= bytesMax) return { id, data, headers, msgID };
    // Its number is there, so that nobody takes it for lost; what it said is at the server.
    headers.set(headerNames.leftOut, String(bytes));
    say(`${run_id}: message ${id} has ${bytes} bytes, more than this NATS takes; it is published empty`);
    return { id, data: "", headers, msgID };
  };
}

function eventIdIn(data: string): string | undefined {
  const value: unknown = JSON.parse(data);
  if (!isObject(value)) return undefined;
  const inner = isObject(value.params) ? value.params : value;
  const id = inner.eventId ?? inner.id;
  return typeof id === "string" && /^[\x21-\x7e]{1,256}$/.test(id) ? id : undefined;
}

/** Without JetStream: sent, and known to have reached the server. Whoever did not listen asks. */
export function corePublisher(parts: PublisherParts): Publisher {
  const { connected } = parts;
  const patiently = patience(parts);
  return {
    async open(run_id, subject) {
      const made = outgoing(parts, run_id, subject);
      return {
        after: undefined,
        async publish(messages) {
          const out = messages.map(made);
          // Cut off in the middle, all of it goes out again, under the same ids.
          const send = (): Promise<void> => {
            for (const { data, headers } of out) connected.nc.publish(subject, data, { headers });
            return connected.nc.flush();
          };
          await patiently(run_id, send, () => false);
        },
      };
    },
  };
}

export interface JetStreamParts extends PublisherParts {
  readonly js: JetStreamClient;
  readonly jsm: JetStreamManager;
  readonly stream: string;
  /** Makes it again where it is gone. */
  ensure(): Promise<unknown>;
}

export function jetStreamPublisher(parts: JetStreamParts): Publisher {
  const { js, jsm, stream, ensure } = parts;
  const patiently = patience(parts);
  const isWrongLast = (error: unknown): boolean =>
    codeOf(error) === JetStreamApiCodes.StreamWrongLastSequence;
  /** A stream that is gone is made again before the next try. */
  const orEnsure = async (error: unknown): Promise<never> => {
    if (!isWrongLast(error)) await ensure().catch(() => {});
    throw error;
  };

  return {
    async open(run_id, subject) {
      const made = outgoing(parts, run_id, subject);
      const held = await patiently(
        run_id,
        () => jsm.streams.getMessage(stream, { last_by_subj: subject }).catch(orEnsure),
        () => false,
      );
      let last = held?.seq ?? 0;

      async function publishOne({ id, data, headers, msgID }: Outgoing): Promise<void> {
        try {
          const ack = await patiently(
            run_id,
            () =>
              js
                .publish(subject, data, {
                  headers,
                  msgID,
                  timeout: ackMsMax,
                  expect: { lastSubjectSequence: last, streamName: stream },
                })
                .catch(orEnsure),
            isWrongLast,
          );
          last = ack.seq;
        } catch (error) {
          if (!isWrongLast(error)) throw error;
          throw new Overtaken(`${run_id} has gone on without message ${id}`);
        }
      }

      return {
        after: held?.header.get(headerNames.sequence) || undefined,
        async publish(messages) {
          // One by one: two on their way could come to stand in the wrong order, where the first is lost.
          for (const message of messages) await publishOne(made(message));
        },
      };
    },
  };
}
