// Whether a file or a socket speaks Loom as it should, message by message. Several runs may follow each other: a
// `run_start`, or an `event_id` that begins again, begins another.

import type { Facts } from "../../events.js";
import { isCount, isObject } from "../../parse.js";
import type { Validator, Violation } from "../../validate.js";
import { isName, wordOf, wrongMembers } from "./words.js";

export const loomRules = {
  "LOOM-JSON": "a message is one JSON object",
  "LOOM-TYPE": "a message has a string `type`, or it is a reply and has a string `reply`",
  "LOOM-MEMBER": "a message has the members that its type needs",
  "LOOM-ENVELOPE": "`session_id` and `node_id` are strings, `event_id` is a whole number",
  "LOOM-ORDER": "`event_id` increases within a run",
  "LOOM-SESSION": "`session_id` is the same within a run",
  "LOOM-SPAN": "a node is entered before it is left, and left before the reply, unless the run was cancelled",
  "LOOM-END": "a run ends with one reply or one `run_error`, and nothing of it follows",
} as const;

type Rule = keyof typeof loomRules;

interface Run {
  lastId: number | null;
  session: string | null;
  readonly open: string[];
  ended: boolean;
}

export function loomValidator(): Validator {
  let run: Run | null = null;

  function begin(): Run {
    return { lastId: null, session: null, open: [], ended: false };
  }

  function check(message: Facts): readonly Violation[] {
    const { type, reply } = message;
    const found: Violation[] = [];
    const wrong = (rule: Rule, what: string): void => void found.push({ rule, what });
    const isReply = typeof type !== "string";
    if (isReply && typeof reply !== "string") {
      wrong(
        "LOOM-TYPE",
        type === undefined ? "there is neither `type` nor `reply`" : "`type` must be a string",
      );
      return found;
    }
    if (!isReply && !isName(type)) {
      wrong("LOOM-TYPE", "`type` must be 1 to 64 letters, digits, `_` and `-`");
      return found;
    }
    const word = wordOf(type);
    for (const what of word === undefined ? [] : wrongMembers(word, message)) wrong("LOOM-MEMBER", what);
    for (const what of wrongEnvelope(message)) wrong("LOOM-ENVELOPE", what);

    const event_id = isCount(message.event_id) ? message.event_id : null;
    const isAgain = run?.lastId != null && event_id !== null && event_id <= run.lastId && event_id <= 1;
    if (run === null || type === "run_start" || (run.ended && isAgain)) {
      if (run !== null && !run.ended) wrong("LOOM-END", "the run before has no reply");
      run = begin();
    } else if (run.ended) wrong("LOOM-END", "the run has ended before");

    if (event_id !== null) {
      if (run.lastId !== null && event_id <= run.lastId)
        wrong("LOOM-ORDER", `\`event_id\` ${event_id} comes after ${run.lastId}`);
      run.lastId = Math.max(run.lastId ?? 0, event_id);
    }
    if (typeof message.session_id === "string") {
      if (run.session !== null && run.session !== message.session_id)
        wrong("LOOM-SESSION", "`session_id` is another than before");
      run.session = message.session_id;
    }
    follow(run, message, wrong);
    return found;
  }

  function follow(
    of: Run,
    { type, id, stop_reason }: Facts,
    wrong: (rule: Rule, what: string) => void,
  ): void {
    if (type === "node_enter" && typeof id === "string") of.open.push(id);
    if (type === "node_exit" && typeof id === "string") {
      const at = of.open.lastIndexOf(id);
      if (at < 0) wrong("LOOM-SPAN", `${JSON.stringify(id.slice(0, 80))} is left, and was not entered`);
      else of.open.splice(at, 1);
    }
    if (typeof type === "string" && type !== "run_error") return;
    // Who is stopped leaves things as they are.
    if (type !== "run_error" && stop_reason !== "cancelled" && of.open.length > 0)
      wrong("LOOM-SPAN", `${JSON.stringify(of.open.join(", ").slice(0, 80))} is still open at the reply`);
    of.ended = true;
  }

  return {
    check(text) {
      let message: unknown;
      try {
        message = JSON.parse(text);
      } catch {
        return [{ rule: "LOOM-JSON", what: "it is not JSON" }];
      }
      if (!isObject(message)) return [{ rule: "LOOM-JSON", what: "it is not an object" }];
      return check(message);
    },
    end: () =>
      run === null || run.ended ? [] : [{ rule: "LOOM-END", what: "there is no reply: the run was cut off" }],
  };
}

function wrongEnvelope({ type, session_id, node_id, event_id }: Facts): readonly string[] {
  const strings = Object.entries({ session_id, ...(type === "got_expand" ? {} : { node_id }) });
  return [
    ...strings
      .filter(([, value]) => value != null && typeof value !== "string")
      .map(([name]) => `\`${name}\` must be a string`),
    ...(event_id == null || isCount(event_id) ? [] : ["`event_id` must be a whole number"]),
  ];
}
