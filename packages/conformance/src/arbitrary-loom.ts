// Streams of Loom as a sender may write them: every word, with members that no table knows, with and without an
// envelope, nodes that overlap, calls with and without an id, and a reply or an error at the end.

import { loomWords } from "@runwire/protocol";
import fc from "fast-check";
import { arbitraryFacts, arbitraryJson, arbitraryText, throughJson } from "./arbitrary-json.js";

export interface LoomMessage {
  readonly [member: string]: unknown;
}

const name = fc.constantFrom("think", "act", "observe", "a b", "");
const count = fc.nat(2 ** 32 - 1);
const id = fc.constantFrom("call-1", "call_2", "constructor", "no id here");

const kinds: { readonly [kind: string]: fc.Arbitrary<unknown> } = {
  string: arbitraryText,
  number: fc.double({ noNaN: true, noDefaultInfinity: true }),
  boolean: fc.boolean(),
  count,
  object: arbitraryFacts,
  strings: fc.array(arbitraryText, { maxLength: 3 }),
  numbers: fc.array(fc.double({ noNaN: true, noDefaultInfinity: true }), { maxLength: 3 }),
  result: fc.oneof(
    fc.constant("Ok"),
    arbitraryText.map((Err) => ({ Err })),
  ),
  any: arbitraryJson,
};

const members: { readonly [member: string]: fc.Arbitrary<unknown> } = { id: name, name, call_id: id };
const known = new Set(["session_id", "node_id", "event_id", "type", "reply", "stop_reason", "namespace"]);

/** A well-formed message of one word, without its envelope. */
export function arbitraryWord(type: string): fc.Arbitrary<LoomMessage> {
  const rows = Object.entries(loomWords[type]?.members ?? {});
  const own = Object.fromEntries(
    rows.map(([member, [, kindText]]) => {
      const kind = kindText.replace("?", "");
      const value =
        (type.startsWith("got_") ? undefined : members[member]) ?? kinds[kind] ?? fc.constant(null);
      return [member, kindText.endsWith("?") ? fc.option(value) : value];
    }),
  );
  const needed = rows.filter(([, [, kind]]) => !kind.endsWith("?")).map(([member]) => member);
  const more = arbitraryFacts.map((facts) =>
    Object.fromEntries(Object.entries(facts).filter(([key]) => !known.has(key) && !(key in own))),
  );
  return fc
    .tuple(fc.record(own, { requiredKeys: needed, noNullPrototype: true }), fc.option(more))
    .map(([said, others]) => throughJson({ type, ...said, ...others }) as LoomMessage);
}

/** Words that may stand in the middle of a run. */
export const loomTypes: readonly string[] = Object.keys(loomWords);
const inside = loomTypes.filter((type) => type !== "run_start" && type !== "run_error");

const last: fc.Arbitrary<LoomMessage> = fc.oneof(
  arbitraryText.map((reply) => ({ reply })),
  arbitraryText.map((reply) => ({ reply, stop_reason: "cancelled" })),
  arbitraryText.map((reply) => ({ reply, stop_reason: "end_turn", extra: 1 })),
  arbitraryWord("run_error"),
);

/** A whole stream. With an envelope every message has one, and the nodes are as the sender numbers them. */
export const arbitraryLoomStream: fc.Arbitrary<readonly LoomMessage[]> = fc
  .tuple(
    arbitraryWord("run_start"),
    fc.array(fc.oneof(...inside.map(arbitraryWord)), { maxLength: 25 }),
    last,
    fc.boolean(),
    fc.array(fc.constantFrom("n-1", "n-2", "run-think-0", "odd node"), { minLength: 30, maxLength: 30 }),
  )
  .map(([start, middle, end, hasEnvelope, nodes]) => {
    const messages = [start, ...middle, end];
    if (!hasEnvelope) return messages;
    return messages.map((message, i) => ({
      session_id: "sess-001",
      ...(i === 0 || message.type === "got_expand" ? {} : { node_id: nodes[i] }),
      event_id: i + 1,
      ...message,
    }));
  });
