import { RunwireError } from "@runwire/protocol";
import { expect, it } from "vitest";
import { adviceOn, endpointOf } from "./server-flags.js";

it("what the server says and what to do about it are two sentences, however the first ends", () => {
  for (const detail of ["`input`: it does not fit", "`input`: it does not fit."]) {
    const advice = adviceOn(new RunwireError("KAI-REQUEST-BODY-0002", detail), "http://here");
    expect(advice).toContain("it does not fit. The message");
  }
});

it("an address with a password is refused, and the password is not said again", () => {
  const given = { url: "http://me:hidden@127.0.0.1:4700" };
  expect(() => endpointOf(given, {})).toThrow(/^--url: (?!.*hidden).*RUNWIRE_TOKEN/);
  expect(() => endpointOf({}, { RUNWIRE_URL: given.url })).toThrow(/^RUNWIRE_URL: (?!.*hidden)/);
  const bare = { url: "me:hidden@runs.example.com" };
  expect(() => endpointOf(bare, {})).toThrow(/^--url: (?!.*hidden).*it takes an address/);
});
