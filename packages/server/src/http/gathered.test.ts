import fc from "fast-check";
import { expect, it } from "vitest";
import { gatheredBytes } from "./gathered.js";

it("bytes that come in pieces are one whole, and the next are another", () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)));
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 4 }), (wholes) => {
      const gathered = gatheredBytes();
      const taken = wholes.map((list) => {
        for (const piece of list) gathered.add(piece);
        expect(gathered.length).toBe(Buffer.concat(list).length);
        return gathered.take();
      });
      expect(taken).toEqual(wholes.map((list) => Buffer.concat(list)));
    }),
  );
});
