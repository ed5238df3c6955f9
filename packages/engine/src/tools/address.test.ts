import { isIPv6 } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { outcomeOf, testContext } from "../testing/context.js";
import { isPublicAddress, isPublicName } from "./address.js";
import { webFetchTool } from "./web-fetch.js";

type Quad = readonly [number, number, number, number];

const closed: readonly Quad[] = [
  [0, 0, 0, 0],
  [0, 1, 2, 3],
  [10, 0, 0, 1],
  [10, 255, 255, 255],
  [100, 64, 0, 1],
  [100, 100, 100, 200],
  [100, 127, 255, 255],
  [127, 0, 0, 1],
  [127, 1, 2, 3],
  [127, 255, 255, 254],
  [168, 63, 129, 16],
  [169, 254, 169, 254],
  [172, 16, 0, 1],
  [172, 31, 255, 255],
  [192, 0, 0, 192],
  [192, 0, 2, 1],
  [192, 88, 99, 1],
  [192, 168, 0, 1],
  [192, 168, 255, 255],
  [198, 18, 0, 1],
  [198, 19, 255, 255],
  [198, 51, 100, 7],
  [203, 0, 113, 7],
  [224, 0, 0, 1],
  [239, 255, 255, 250],
  [240, 0, 0, 1],
  [255, 255, 255, 255],
];

/** All the ways in which a URL may spell one address. */
function spellingsOf([a, b, c, d]: Quad): readonly string[] {
  const hex = (n: number): string => `0x${n.toString(16)}`;
  const octal = (n: number): string => `0${n.toString(8)}`;
  const last3 = (b << 16) | (c << 8) | d;
  const last2 = (c << 8) | d;
  const whole = a * 2 ** 24 + last3;
  const v6 = `${((a << 8) | b).toString(16)}:${last2.toString(16)}`;
  const dotted = [a, b, c, d].join(".");
  return [
    dotted,
    `${dotted}.`,
    [a, b, c, d].map(hex).join("."),
    [a, b, c, d].map(octal).join("."),
    [hex(a), octal(b), c, d].join("."),
    [a, b, last2].join("."),
    [a, last3].join("."),
    [hex(a), hex(last3)].join("."),
    [octal(a), octal(last3)].join("."),
    `${whole}`,
    hex(whole),
    hex(whole).toUpperCase(),
    octal(whole),
    `0000${octal(a)}.${b}.${c}.${d}`,
    dotted.replaceAll(".", "。"),
    dotted.replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
    dotted.replaceAll(".", "%2e"),
    `[::ffff:${dotted}]`,
    `[::ffff:${v6}]`,
    `[0:0:0:0:0:ffff:${v6}]`,
    `[::${dotted}]`,
    `[::${v6}]`,
    `[::ffff:0:${v6}]`,
    `[64:ff9b::${dotted}]`,
    `[64:ff9b::${v6}]`,
    `[64:ff9b:1::${v6}]`,
    `[2002:${v6}::1]`,
    `[2001:0:${v6}::]`,
  ];
}

const closedV6 = [
  "::",
  "::1",
  "fe80::1",
  "fe80::1%eth0",
  "fe80::1%25eth0",
  "febf::1",
  "fec0::1",
  "fc00::1",
  "fd00:ec2::254",
]
  .concat([
    "ff02::1",
    "ff0e::1",
    "100::1",
    "2001::1",
    "2001:10::1",
    "2001:db8::1",
    "2002::1",
    "3fff::1",
    "4000::1",
  ])
  .concat([
    "5f00::1",
    "64:ff9b::808:808",
    "::ffff:8.8.8.8",
    "::8.8.8.8",
    "0:0:0:0:0:0:0:1",
    "2606:4700::1%lo",
    "8000::1",
  ]);

describe("an address that is not public", () => {
  const context = testContext();
  const names: string[] = [];
  const tool = webFetchTool({
    resolve: async (name) => {
      names.push(name);
      return ["127.0.0.1"];
    },
  });

  it.each(closed.map((quad) => [quad.join("."), spellingsOf(quad)] as const))(
    "is not fetched from, however it is spelled: %s",
    async (_, spellings) => {
      for (const spelling of spellings) {
        for (const url of [`http://${spelling}/`, `https://${spelling}:8443/x`]) {
          const { kind } = await outcomeOf(tool, { url }, context);
          expect([url, kind]).toEqual([url, URL.canParse(url) ? "refused" : "invalid-input"]);
        }
      }
      expect(names).toEqual([]);
    },
  );

  it("is not fetched from when it is IPv6", async () => {
    for (const address of closedV6) {
      expect([address, isPublicAddress(address)]).toEqual([address, false]);
      const url = `http://[${address}]/`;
      const { kind } = await outcomeOf(tool, { url }, context);
      expect([url, kind]).toEqual([url, URL.canParse(url) ? "refused" : "invalid-input"]);
    }
    expect(names).toEqual([]);
  });

  it("is not fetched from by a name that means this machine or its network", async () => {
    for (const name of [
      "localhost",
      "LOCALHOST",
      "localhost.",
      "a.localhost",
      "printer",
      "printer.local",
      "db.internal",
    ]) {
      expect(isPublicName(name)).toBe(false);
      expect(await outcomeOf(tool, { url: `http://${name}/` }, context)).toMatchObject({ kind: "refused" });
    }
    expect(names).toEqual([]);
    expect(await outcomeOf(tool, { url: "http://public.example.com/" }, context)).toMatchObject({
      kind: "refused",
    });
    expect(names).toEqual(["public.example.com"]);
  });
});

describe("an address is public", () => {
  it("exactly when no reserved range holds it", () => {
    // Said a second time, as numbers, so that neither saying can be wrong alone.
    const isClosed = (a: number, b: number, c: number, d: number): boolean =>
      a === 0 ||
      a === 10 ||
      a === 127 ||
      a >= 224 ||
      (a === 100 && b >= 64 && b < 128) ||
      (a === 168 && b === 63 && c === 129 && d === 16) ||
      (a === 169 && b === 254) ||
      (a === 172 && b >= 16 && b < 32) ||
      (a === 192 && b === 168) ||
      (a === 192 && b === 0 && (c === 0 || c === 2)) ||
      (a === 192 && b === 88 && c === 99) ||
      (a === 198 && (b === 18 || b === 19 || (b === 51 && c === 100))) ||
      (a === 203 && b === 0 && c === 113);
    const near = fc.constantFrom(...closed.flat(), ...closed.flat().map((n) => (n + 1) % 256));
    const byte = fc.oneof(near, fc.nat({ max: 255 }));
    fc.assert(
      fc.property(byte, byte, byte, byte, (a, b, c, d) => {
        expect(isPublicAddress(`${a}.${b}.${c}.${d}`)).toBe(!isClosed(a, b, c, d));
      }),
      { numRuns: 20_000 },
    );
  });

  it("when it is IPv6 and of the assigned part of the internet", () => {
    const group = fc.oneof(
      fc.constantFrom(0, 0x2001, 0x2002, 0xdb8, 0x3fff, 0xfff, 0x1000, 0x200),
      fc.nat({ max: 0xffff }),
    );
    fc.assert(
      fc.property(fc.tuple(group, group, group, group, group, group, group, group), (groups) => {
        const [first, second] = groups;
        const isOpen =
          first >> 13 === 1 &&
          !(first === 0x2001 && second < 0x200) &&
          !(first === 0x2001 && second === 0xdb8) &&
          first !== 0x2002 &&
          !(first === 0x3fff && second < 0x1000);
        const address = groups.map((n) => n.toString(16)).join(":");
        expect(isIPv6(address)).toBe(true);
        expect(isPublicAddress(address)).toBe(isOpen);
      }),
      { numRuns: 20_000 },
    );
  });

  it.each([
    "8.8.8.8",
    "1.1.1.1",
    "172.15.0.1",
    "172.32.0.1",
    "100.63.0.1",
    "100.128.0.1",
    "2606:4700:4700::1111",
  ])("as %s is", (address) => expect(isPublicAddress(address)).toBe(true));

  it.each([
    "",
    "localhost",
    "example.com",
    "8.8.8.8 ",
    "08.8.8.8",
    "8.8.8",
    "0x8.8.8.8",
    "[2606:4700::1]",
    "8.8.8.8/8",
  ])("and %j, which is none, is not", (address) => expect(isPublicAddress(address)).toBe(false));
});
