// Self-signed certificates for any span of time, without a tool and without a key in the repository.
//
//   Certificate ::= SEQUENCE { tbs, algorithm, BIT STRING signature }
//   tbs         ::= SEQUENCE { [0] version, serial, algorithm, issuer, validity, subject, public key }

import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";

export interface Certified {
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
}

export function selfSigned(from: Date, to: Date): Certified {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const tbs = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    ed25519,
    localhost,
    sequence(time(from), time(to)),
    localhost,
    publicKey.export({ type: "spki", format: "der" }),
  );
  const signature = sign(null, tbs, privateKey);
  const whole = sequence(tbs, ed25519, der(0x03, Buffer.from([0]), signature));
  return { certificate: pem("CERTIFICATE", whole), key: exported(privateKey) };
}

const ed25519 = sequence(der(0x06, Buffer.from([0x2b, 0x65, 0x70])));
const commonName = der(0x06, Buffer.from([0x55, 0x04, 0x03]));
const localhost = sequence(der(0x31, sequence(commonName, der(0x0c, Buffer.from("localhost")))));

function time(at: Date): Buffer {
  return der(0x18, Buffer.from(`${at.toISOString().replace(/[-:T]|\..*/g, "")}Z`));
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, ...parts);
}

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const { length: bytes } = body;
  // The shortest there is: some readers refuse another.
  const length = bytes < 128 ? [bytes] : bytes < 256 ? [0x81, bytes] : [0x82, bytes >> 8, bytes & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}

function pem(label: string, bytes: Buffer): string {
  const lines = bytes.toString("base64").match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ""].join("\n");
}

function exported(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}
