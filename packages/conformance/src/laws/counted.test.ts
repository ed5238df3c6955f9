// The count of blobs against every order in which its parts may happen: whoever holds, refers, is refused and erases,
// a blob is there in the end if and only if somebody refers to it, and never missing while somebody does.

import { countedBlobs } from "@runwire/server";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const tenant = "acme";
const ref = `blob_${"0".repeat(64)}`;
const blob = { ref, media_type: "text/plain; charset=utf-8", bytes: 1, content: Buffer.from("x") };

describe("a blob", () => {
  it("is there if and only if somebody refers to it, in every order of events [RW-BLOB-5]", async () => {
    const act = fc.constantFrom("stored", "refused", "stored, then erased", "cleaned");
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(act, { minLength: 1, maxLength: 5 }),
        fc.boolean(),
        async (s, acts, left) => {
          const turn = (what: string) => s.schedule(Promise.resolve(), what);
          let isThere = left;
          let referring = 0;
          const counted = countedBlobs(
            {
              async put() {
                await turn("put looks");
                if (isThere) return;
                await turn("put writes");
                isThere = true;
              },
              async remove() {
                await turn("remove");
                isThere = false;
              },
              open: async () => undefined,
              async *list() {
                await turn("list");
                if (isThere) yield { tenant, ref };
              },
            },
            {
              async blob() {
                await turn("count asked");
                const found = referring > 0;
                await turn("count told");
                return found ? blob : undefined;
              },
            },
          );
          const doing = acts.map(async (does, i) => {
            await turn(`${i} ${does}`);
            if (does === "cleaned") return counted.clean();
            await counted.hold(tenant, [blob]);
            await turn(`${i} decides`);
            // What is committed now is to be read from now on.
            expect(isThere).toBe(true);
            if (does !== "refused") referring += 1;
            const letting = counted.letGo(tenant, [ref]);
            if (does !== "stored, then erased") return letting;
            await turn(`${i} erases`);
            expect(isThere).toBe(true);
            referring -= 1;
            await counted.drop(tenant, [ref]);
            return letting;
          });
          await s.waitFor(Promise.all(doing));
          expect(isThere).toBe(referring > 0);
        },
      ),
      { numRuns: 2000 },
    );
  });
});
