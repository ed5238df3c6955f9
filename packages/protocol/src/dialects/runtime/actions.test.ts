import { describe, expect, it } from "vitest";
import type { Event } from "../../events.js";
import { reduceAll } from "../../reduce.js";
import { emptyTranscript } from "../../transcript.js";
import { runtime } from "./index.js";

describe("an action of another runtime", () => {
  it.each([
    { actionType: "user_input", answer: "blue" },
    { status: "resolved" },
    { actionType: "approval", decision: "resolved" },
    { actionType: "approval", decision: "approve" },
  ])(
    "is resolved by whatever answer it gets, which is said again as it came: %j [RW-RUNTIME-3] [RW-RUNTIME-6]",
    (answer) => {
      const messages = [
        {
          type: "action.required",
          actionId: "act_1",
          payload: { actionType: "user_input", prompt: "Which?" },
        },
        { type: "action.resolved", actionId: "act_1", payload: answer },
      ];
      const decoder = runtime.decoder();
      const log = messages
        .flatMap((message) => decoder.decode({ data: JSON.stringify(message) }))
        .map((draft, i): Event => {
          const numbers = { id: `evt_${i}`, ts: "2026-01-01T00:00:00.000Z", pos: i + 1, seq: i + 1 };
          return { run_id: "run_1", child_id: null, ...draft, ...numbers } as Event;
        });
      const { approvals } = reduceAll(emptyTranscript("run_1"), log);
      expect(approvals).toMatchObject({ act_1: { status: "resolved" } });
      let state = runtime.first;
      const said = log.flatMap((e) => {
        const [next, all] = runtime.step(state, e);
        state = next;
        return all.map(({ data }) => JSON.parse(data));
      });
      const own = said.filter(({ derivedFrom }) => derivedFrom === undefined);
      expect(own).toMatchObject(messages);
      expect(own.map(({ payload }) => payload)).toEqual(messages.map(({ payload }) => payload));
    },
  );
});
