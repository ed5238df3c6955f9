import type { ServerResponse } from "node:http";
import { constants, type Http2ServerResponse, type ServerHttp2Stream } from "node:http2";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";

/** Acts when the connection is over: at once where that came while its request was still being looked at. */
export function whenClosed(connection: ServerResponse | Duplex, act: () => void): void {
  if (isClosed(connection)) act();
  else connection.once("close", act);
}

/** An answer over HTTP/2 does not know itself; its stream does. */
export function isClosed(connection: ServerResponse | Duplex): boolean {
  return (streamOf(connection) ?? connection).destroyed;
}

/** Ends an answer so that nobody takes it for whole. A stream of HTTP/2 that is only destroyed ends as if it were. */
export function breakOff(res: ServerResponse): void {
  const stream = streamOf(res);
  if (stream !== undefined) stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  else if (endsWithConnection(res)) res.socket.resetAndDestroy();
  else res.destroy();
}

/** HTTP/1.0 knows no chunks: only a reset says that there should have been more. TLS says by itself where it was cut. */
function endsWithConnection(res: ServerResponse): res is ServerResponse & { readonly socket: Socket } {
  return res.req.httpVersion === "1.0" && res.socket instanceof Socket && !(res.socket instanceof TLSSocket);
}

/** The one stream of a connection that is this answer's; undefined where it has the whole connection. */
export function streamOf(connection: ServerResponse | Duplex): ServerHttp2Stream | undefined {
  return (connection as unknown as Partial<Http2ServerResponse>).stream;
}
