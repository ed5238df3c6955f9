import { serveBlob } from "../blobs/serve.js";
import type { Call, Route } from "../http/route.js";
import type { Rooms } from "../rooms.js";

export function blobRoutes({ blobs }: Rooms): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/v1/blobs/:ref",
      does: "a spilled payload, or a part of it",
      handle: (call) => serveBlob(blobs, call.req, call.res, call.tenant, refOf(call)),
    },
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
