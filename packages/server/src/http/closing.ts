import type { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import type { Duplex } from "node:stream";

/** Acts when the connection is over: at once where that came while its request was still being looked at. */
export function whenClosed(connection: ServerResponse | Duplex, act: () => void): void {
  if (isClosed(connection)) act();
  else connection.once("close", act);
}

/** An answer over HTTP/2 does not know itself; its stream does. */
function isClosed(connection: ServerResponse | Duplex): boolean {
  const { stream } = connection as unknown as Partial<Http2ServerResponse>;
  return (stream ?? connection).destroyed;
}
