import { z } from "zod";
import { serveBlob } from "../blobs/serve.js";
import { type Call, type Route, route } from "../http/route.js";
import type { Rooms } from "../rooms.js";

const content = {
  "application/json": z.unknown(),
  "text/plain": z.string(),
};

export function blobRoutes({ blobs }: Rooms): readonly Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/blobs/:ref",
      does: "a spilled payload, or a part of it",
      scope: "read",
      headers: {
        Range: "a part: `bytes=0-1023`",
        "If-None-Match": "the ref, to ask whether it is still there",
        "If-Range": "the ref: a part only if it is still there",
      },
      answers: {
        200: { does: "the payload, as an attachment", content },
        206: { does: "the part that was asked for", content },
        304: { does: "it is still there" },
      },
      handle: (call) => serveBlob(blobs, call, refOf(call)),
    }),
  ];
}

/** What is not even an id is as unknown as a ref that nobody has. */
function refOf(call: Call): string {
  try {
    return call.param("ref");
  } catch {
    return "";
  }
}
