// Tokens that must not let anybody in, on every route that the server has. What is wrong with a token in itself is held
// against the verifier in the server's own tests; here it is that no route is without it.

import { createHmac, generateKeyPairSync, type KeyObject, sign as signBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Facts } from "@runwire/protocol";
import { startGateway } from "@runwire/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bearer, each, newRun, questionFor, type RouteUnderTest, routesOf, ways, write } from "./access.js";
import { ask } from "./asking.js";
import { runPath, text } from "./calls.js";
import { underTest } from "./under-test.js";

const issuer = generateKeyPairSync("rsa", { modulusLength: 2048 });
const stranger = generateKeyPairSync("rsa", { modulusLength: 2048 });
const kid = "2026-11";

const published = createServer((_request, response) => {
  const jwk = issuer.publicKey.export({ format: "jwk" });
  response.end(JSON.stringify({ keys: [{ ...jwk, kid, alg: "RS256", use: "sig" }] }));
});
await new Promise<void>((resolve) => published.listen(0, "127.0.0.1", resolve));

const server = underTest(startGateway, {
  auth: "jwt",
  jwksUrl: `http://127.0.0.1:${(published.address() as AddressInfo).port}/jwks.json`,
  jwtIssuer: "issuer",
  jwtAudience: "runwire",
  requestsPerSecond: 0,
} as const);

afterAll(() => published.close());

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
const inSeconds = (s: number): number => Math.floor(Date.now() / 1000) + s;

/** What the issuer says of Alice, all of whose scopes a forger would like to have. */
function claims(other: Facts = {}): Facts {
  const scope = "read write control approve admin";
  return { iss: "issuer", aud: "runwire", tenant: "alice", scope, exp: inSeconds(3600), ...other };
}

function token(header: Facts, said: Facts, sign: (bytes: Buffer) => Buffer): string {
  const head = `${part(header)}.${part(said)}`;
  return `${head}.${sign(Buffer.from(head)).toString("base64url")}`;
}

const rsa = (key: KeyObject) => (bytes: Buffer) => signBytes("sha256", bytes, key);
const issued = (other: Facts = {}): string =>
  token({ alg: "RS256", kid }, claims(other), rsa(issuer.privateKey));
/** The public key as a secret that both sides share. */
const confused = (secret: string | Buffer) => (bytes: Buffer) =>
  createHmac("sha256", secret).update(bytes).digest();
const pem = issuer.publicKey.export({ format: "pem", type: "spki" });
const withoutSignature = (alg: string): string => token({ alg, kid }, claims(), () => Buffer.alloc(0));

const [header = "", said = "", signature = ""] = issued().split(".");
const bad: { readonly [kind: string]: string } = {
  "of another signer": token({ alg: "RS256", kid }, claims(), rsa(stranger.privateKey)),
  "of another signer, whose key it brings": token(
    { alg: "RS256", kid, jwk: stranger.publicKey.export({ format: "jwk" }) },
    claims(),
    rsa(stranger.privateKey),
  ),
  "with other claims than were signed": `${header}.${part(claims({ tenant: "operator" }))}.${signature}`,
  "of which the signature is cut off": `${header}.${said}.`,
  "that has expired": issued({ exp: inSeconds(-3600) }),
  "for another audience": issued({ aud: "somebody-else" }),
  "of another issuer": issued({ iss: "elsewhere" }),
  "with alg none": withoutSignature("none"),
  "signed with the public key as a secret": token({ alg: "HS256", kid }, claims(), confused(pem)),
};

let run_id: string;
let routes: readonly RouteUnderTest[];

beforeAll(async () => {
  routes = (await routesOf(server.url)).filter(({ scope }) => scope !== "anyone");
  run_id = await newRun(server.url, bearer(issued()));
  await write(server.url, bearer(issued()), run_id, text("a secret"));
});

/** All there is to know. */
async function everything(): Promise<readonly string[]> {
  const paths = ["/v1/agent/runs", `/v1/agent/runs/${run_id}`, runPath(run_id, "events?dialect=runwire")];
  const answers = await Promise.all(
    [...paths, "/v1/retention"].map((path) => ask(server.url, { path, headers: bearer(issued()) })),
  );
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  return answers.map((answer) => answer.text);
}

describe("a token", () => {
  it("of the issuer opens every route, so that it is the others' own fault", async () => {
    expect(routes.length).toBeGreaterThan(30);
    const headers = bearer(issued());
    await each(
      routes.filter(({ method, streams }) => method === "GET" && !streams),
      async (route) => {
        const { status } = await ask(server.url, { ...questionFor(route, { id: run_id }), headers });
        expect([route.name, status]).not.toEqual([route.name, 401]);
      },
    );
  });

  it.each(Object.entries(bad))(
    "%s is refused on every route, and does nothing [RW-AUTH-2]",
    async (_, forged) => {
      const before = await everything();
      await each(
        routes.flatMap((route) => ways(route, { id: run_id })),
        async (question) => {
          const {
            status,
            code,
            text: told,
          } = await ask(server.url, { ...question, headers: bearer(forged) });
          expect([question, status]).toEqual([question, 401]);
          expect(code).toMatch(/^KAI-AUTH-TOKEN-000[23]$/);
          expect(told).not.toContain("a secret");
        },
      );
      expect(await everything()).toEqual(before);
    },
  );
});
