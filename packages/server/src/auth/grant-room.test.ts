import { expect, it } from "vitest";
import { grantRoom } from "./grant-room.js";

function roomFor(max: number, kept: { [tenant: string]: number }) {
  let nowMs = 0;
  const room = grantRoom({ count: async (tenant) => kept[tenant] ?? 0 }, { monotonic: () => nowMs }, max);
  const make = (tenant: string): Promise<string> =>
    room(tenant).then(
      () => "made",
      ({ code }) => code,
    );
  return { make, pass: (ms: number) => (nowMs += ms) };
}

it("a tenant makes so many tickets and sessions, however many it asks for at once, and others as many", async () => {
  const { make } = roomFor(5, { acme: 2 });
  const asked = await Promise.all(Array.from({ length: 10 }, () => make("acme")));
  expect(asked.filter((outcome) => outcome === "made")).toHaveLength(3);
  expect(new Set(asked)).toEqual(new Set(["made", "KAI-LIMIT-GRANTS-0001"]));
  expect(await make("globex")).toBe("made");
});

it("there is room again when some are over", async () => {
  const kept = { acme: 5 };
  const { make, pass } = roomFor(5, kept);
  expect(await make("acme")).toBe("KAI-LIMIT-GRANTS-0001");
  kept.acme = 4;
  pass(1000);
  expect(await make("acme")).toBe("made");
  expect(await make("acme")).toBe("KAI-LIMIT-GRANTS-0001");
});
