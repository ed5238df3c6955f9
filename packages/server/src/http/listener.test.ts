import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, connect } from "node:net";
import { describe, expect, it } from "vitest";
import { listener } from "./listener.js";

describe("a connection on which nothing is said", () => {
  // Only there does the system tell of its timers.
  it.skipIf(process.platform !== "linux")("is asked by the system whether its other end lives", async () => {
    const server = listener(null, 16_384);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const accepted = once(server, "connection");
    const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
    await Promise.all([accepted, once(client, "connect")]);
    expect(timerOf(client.remotePort ?? 0, client.localPort ?? 0)).toBe(keepaliveTimer);
    client.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
});

const keepaliveTimer = "02";

/** `sl local_address rem_address st tx_queue:rx_queue tr:tm->when …`, of the end that listens. */
function timerOf(localPort: number, remotePort: number): string | undefined {
  const hex = (port: number): string => `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = readFileSync("/proc/net/tcp", "utf8")
    .split("\n")
    .map((row) => row.trim().split(/\s+/));
  const own = rows.find(
    ([, local, remote]) => local?.endsWith(hex(localPort)) && remote?.endsWith(hex(remotePort)),
  );
  return own?.[5]?.slice(0, 2);
}
