// Another party that signs tokens: real keys, published by a real server on loopback.

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from "jose";

export interface SigningKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
}

export interface Issuer {
  readonly url: string;
  /** How often the keys were asked for. */
  readonly asked: number;
  publish(keys: readonly SigningKey[]): Promise<void>;
  /** What it answers instead of its keys. */
  answer(status: number, body: string): void;
  close(): Promise<void>;
}

export async function signingKey(alg: string, kid: string): Promise<SigningKey> {
  return { kid, alg, ...(await generateKeyPair(alg, { extractable: true })) };
}

export function sign(
  { alg, kid, privateKey }: SigningKey,
  claims: JWTPayload,
  header: { readonly [member: string]: unknown } = {},
): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg, kid, ...header }).sign(privateKey);
}

export async function issuer(first: readonly SigningKey[]): Promise<Issuer> {
  let asked = 0;
  let status = 200;
  let body = "";
  const server = createServer((_request, response) => {
    asked += 1;
    response.writeHead(status, { "content-type": "application/json" }).end(body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const publish = async (keys: readonly SigningKey[]): Promise<void> => {
    const published: JWK[] = await Promise.all(
      keys.map(async ({ kid, alg, publicKey }) => ({
        ...(await exportJWK(publicKey)),
        kid,
        alg,
        use: "sig",
      })),
    );
    status = 200;
    body = JSON.stringify({ keys: published });
  };
  await publish(first);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`,
    get asked() {
      return asked;
    },
    publish,
    answer: (nextStatus, nextBody) => {
      status = nextStatus;
      body = nextBody;
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
