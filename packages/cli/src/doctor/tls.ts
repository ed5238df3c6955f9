// The certificate and its key, as the server would load them.

import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { messageOf } from "@runwire/protocol";
import { type Check, daysUntil, doubtful, type Finding, right, wrong } from "./finding.js";

const endsSoonMs = 21 * 86_400_000;
const anyone = 0o007;

export const tls: Check = ({ settings, nowMs }) => {
  const { tlsCert, tlsKey } = settings;
  if (tlsCert === null && tlsKey === null) return [];
  if (tlsCert === null || tlsKey === null) {
    const [has, lacks] = tlsCert === null ? ["--tls-key", "--tls-cert"] : ["--tls-cert", "--tls-key"];
    return [wrong("tls", `${has} is set, and ${lacks} is not`, `set ${lacks} too`)];
  }
  let certificate: X509Certificate;
  let key: KeyObject;
  try {
    certificate = new X509Certificate(readFileSync(tlsCert));
  } catch (error) {
    return [wrong("tls", `${tlsCert} is no readable certificate (${messageOf(error)})`, "give a PEM file")];
  }
  try {
    key = createPrivateKey(readFileSync(tlsKey));
  } catch (error) {
    return [
      wrong(
        "tls",
        `${tlsKey} is no readable key (${messageOf(error)})`,
        "give a PEM file without a password",
      ),
    ];
  }
  return [...judgeCertificate(tlsCert, certificate, key, nowMs), ...judgeKeyMode(tlsKey)];
};

function judgeCertificate(
  path: string,
  certificate: X509Certificate,
  key: KeyObject,
  nowMs: number,
): readonly Finding[] {
  const beginsMs = Date.parse(certificate.validFrom);
  const endsMs = Date.parse(certificate.validTo);
  const renew = "renew it, and restart the server";
  if (!certificate.checkPrivateKey(key)) {
    const todo = "give the key that the certificate was made for; a chain begins with the server's own";
    return [wrong("tls", `${path} and the key do not belong together`, todo)];
  }
  if (nowMs < beginsMs) {
    return [wrong("tls", `${path} is not good before ${certificate.validFrom}`, "wait, or set the clock")];
  }
  if (nowMs >= endsMs) return [wrong("tls", `${path} ended on ${certificate.validTo}`, renew)];
  const says = `${path} is good for ${daysUntil(endsMs, nowMs)}`;
  return [endsMs - nowMs <= endsSoonMs ? doubtful("tls", `${says} only`, renew) : right("tls", says)];
}

function judgeKeyMode(path: string): readonly Finding[] {
  if ((statSync(path).mode & anyone) === 0) return [];
  return [doubtful("tls", `${path} is open to every user of this machine`, `chmod o= ${path}`)];
}
