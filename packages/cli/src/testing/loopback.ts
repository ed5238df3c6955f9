// A test's own server on a port of its own, for this machine alone.

import type { AddressInfo, Server } from "node:net";

export interface Loopback {
  readonly port: number;
  readonly url: string;
  /** Resolves when it is gone, and all who were connected to it. */
  close(): Promise<void>;
}

export async function loopback(server: Server & { closeAllConnections?(): void }): Promise<Loopback> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections?.();
      }),
  };
}
