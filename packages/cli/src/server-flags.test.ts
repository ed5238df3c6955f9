import { RunwireError } from "@runwire/protocol";
import { expect, it } from "vitest";
import { adviceOn } from "./server-flags.js";

it("what the server says and what to do about it are two sentences, however the first ends", () => {
  for (const detail of ["`input`: it does not fit", "`input`: it does not fit."]) {
    const advice = adviceOn(new RunwireError("KAI-REQUEST-BODY-0002", detail), "http://here");
    expect(advice).toContain("it does not fit. The message");
  }
});
