import { Readable } from "node:stream";
import type { RunwireError } from "@runwire/protocol";
import { expect, it } from "vitest";
import type { Call } from "../http/route.js";
import type { CountedBlobs } from "./counted.js";
import { serveBlob } from "./serve.js";

const call = { req: { headers: {} }, tenant: "acme" } as unknown as Call;
const row = { ref: "blob_a", bytes: 3, media_type: "text/plain" };

/** What the file holds when it is opened, and whether anybody still refers to it then. */
function blobs(held: string | undefined, isReferred: boolean): CountedBlobs {
  let opened = false;
  return {
    find: async () => (opened && !isReferred ? undefined : row),
    async open() {
      opened = true;
      return held === undefined ? undefined : { bytes: held.length, body: Readable.from([held]) };
    },
  } as unknown as CountedBlobs;
}

it("a blob that is erased between two looks is missing, and one that is damaged is damaged [RW-BLOB-4]", async () => {
  const codeOf = (held: string | undefined, isReferred: boolean): Promise<unknown> =>
    serveBlob(blobs(held, isReferred), call, "blob_a").catch((error: RunwireError) => error.code);
  expect(await codeOf(undefined, false)).toBe("KAI-BLOB-MISSING-0001");
  expect(await codeOf(undefined, true)).toBe("KAI-SERVER-STORE-0003");
  expect(await codeOf("ab", true)).toBe("KAI-SERVER-STORE-0003");
});
