import { koder } from "@runwire/protocol";
import { expect, it } from "vitest";
import { connections } from "../connections.js";
import { appendSession } from "./append-session.js";

it("a session that comes to a server which has begun to leave is refused before it begins", async () => {
  const open = connections({ now: () => 0, monotonic: () => 0 }, () => false);
  open.leave();
  let begun = false;
  const call = {
    begin() {
      begun = true;
    },
  };
  const session = appendSession({ connections: open } as never, call as never, koder as never, undefined);
  await expect(session).rejects.toMatchObject({ code: "KAI-STREAM-LEAVING-0001" });
  expect(begun).toBe(false);
  open.close();
});
