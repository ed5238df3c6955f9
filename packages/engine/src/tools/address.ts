// Which addresses are the public internet. Everything else (this machine, its network, its cloud's metadata) is nobody's
// business who only has a URL. IPv6 is a list of what is allowed: all forms that carry an IPv4 address inside (mapped,
// compatible, NAT64, 6to4, Teredo) are outside of it, and so is what is not assigned yet.

import { BlockList, isIPv4, isIPv6 } from "node:net";

const closedV4 = blockListOf("ipv4", [
  "0.0.0.0/8", // this network
  "10.0.0.0/8", // private
  "100.64.0.0/10", // shared by a provider's customers
  "127.0.0.0/8", // this machine
  "168.63.129.16/32", // what Azure tells its machines
  "169.254.0.0/16", // this link, and cloud metadata
  "172.16.0.0/12", // private
  "192.0.0.0/24", // protocol assignments
  "192.0.2.0/24", // documentation
  "192.88.99.0/24", // 6to4 relays
  "192.168.0.0/16", // private
  "198.18.0.0/15", // benchmarks
  "198.51.100.0/24", // documentation
  "203.0.113.0/24", // documentation
  "224.0.0.0/4", // multicast
  "240.0.0.0/4", // reserved, and broadcast
]);

const openV6 = blockListOf("ipv6", ["2000::/3"]);

const closedV6 = blockListOf("ipv6", [
  "2001::/23", // protocol assignments, Teredo
  "2001:db8::/32", // documentation
  "2002::/16", // 6to4
  "3fff::/20", // documentation
]);

/** Whether an IP address, as a resolver writes it, is on the public internet. Anything else, also a name, is not. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !closedV4.check(address, "ipv4");
  // One with a zone is on a link of this machine.
  if (!isIPv6(address) || address.includes("%")) return false;
  return openV6.check(address, "ipv6") && !closedV6.check(address, "ipv6");
}

/** Whether a name may be looked up at all. Those without a dot, and those kept for local use, mean something here only. */
export function isPublicName(name: string): boolean {
  const labels = name.toLowerCase().replace(/\.$/, "").split(".");
  const last = labels.at(-1) ?? "";
  return labels.length > 1 && !localEndings.has(last) && labels.slice(-2).join(".") !== "home.arpa";
}

const localEndings = new Set([
  "localhost",
  "local",
  "localdomain",
  "internal",
  "intranet",
  "lan",
  "home",
  "corp",
  "onion",
]);

function blockListOf(family: "ipv4" | "ipv6", ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [start = "", bits] = range.split("/");
    list.addSubnet(start, Number(bits), family);
  }
  return list;
}
