import { createHash, createHmac } from "node:crypto";
import { RunwireError } from "@runwire/protocol";
import fc from "fast-check";
import { exportJWK, exportSPKI, type JWTPayload } from "jose";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Clock } from "../clock.js";
import { type Credentials, type Scope, scopes } from "./caller.js";
import { type JwtOptions, jwtCredentials } from "./jwt.js";
import { type Issuer, issuer, type SigningKey, sign, signingKey } from "./testing/issuer.js";

const nowS = 1_800_000_000;
const claims: JWTPayload = {
  iss: "https://login.example",
  aud: "runwire",
  exp: nowS + 600,
  tenant: "acme",
  scope: "read write",
};
const secret = "correct horse battery staple, and some more";
const refused = new RunwireError("KAI-AUTH-TOKEN-0002");
const ended = new RunwireError("KAI-AUTH-TOKEN-0003");

let nowMs: number;
let monotonicMs: number;
const clock: Clock = { now: () => nowMs, monotonic: () => monotonicMs };
let party: Issuer;
let keys: readonly [SigningKey, ...SigningKey[]];
let key: SigningKey;
const open: Credentials[] = [];

beforeAll(async () => {
  const made = ["RS256", "PS256", "ES256", "EdDSA"].map((alg) => signingKey(alg, `the ${alg} key`));
  const [first, ...others] = await Promise.all(made);
  keys = [first!, ...others];
  key = keys[0];
  party = await issuer(keys);
});
afterAll(() => party.close());
beforeEach(async () => {
  nowMs = nowS * 1000;
  monotonicMs = 0;
  await party.publish(keys);
});
afterEach(() => {
  for (const credentials of open.splice(0)) credentials.close();
});

function trusting(options: Partial<JwtOptions> = {}): Credentials {
  const whole = { jwksUrl: party.url, issuer: claims.iss!, audience: "runwire", clock, ...options };
  const credentials = jwtCredentials(whole);
  open.push(credentials);
  return credentials;
}
const sharing = (): Credentials => trusting({ jwksUrl: undefined, secret });

const encode = (value: unknown): string =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

/** A token made by hand, as nobody's library would. */
function forge(header: object, payload: unknown, hmacKey?: string): string {
  const signed = `${encode(header)}.${encode(payload)}`;
  const signature =
    hmacKey === undefined ? "" : createHmac("sha256", hmacKey).update(signed).digest("base64url");
  return `${signed}.${signature}`;
}
const shared = (payload: unknown, header: object = {}): string =>
  forge({ alg: "HS256", ...header }, payload, secret);

describe("a token", () => {
  it("of any allowed algorithm lets in its tenant with its scopes until it ends", async () => {
    const credentials = trusting();
    for (const one of keys) {
      const token = await sign(one, claims);
      const hash = createHash("sha256").update(token).digest("hex");
      const caller = await credentials.check(token);
      expect(caller).toEqual({
        tenant: "acme",
        scopes: new Set(["read", "write"]),
        credential: expect.stringMatching(new RegExp(`^jwt:[0-9a-f]{8}-${hash.slice(0, 16)}$`)),
        endsMs: (nowS + 605) * 1000,
      });
      expect(credentials.isRevoked(caller.credential)).toBe(false);
    }
    expect(await sharing().check(shared(claims))).toMatchObject({ tenant: "acme" });
  });

  it("has the scopes of scope, scopes or scp, with or without our prefix, and no others", async () => {
    const word = fc.tuple(fc.constantFrom("", "runwire:"), fc.constantFrom<Scope>(...scopes));
    const alien = fc.constantFrom("openid", "Read", "other:read", "runwire:root", "runwire:runwire:read", "");
    const list = fc.array(fc.oneof(word, alien), { maxLength: 6 });
    const claim = fc.constantFrom("scope", "scopes", "scp");
    const credentials = sharing();
    await fc.assert(
      fc.asyncProperty(list, claim, fc.boolean(), async (words, name, asText) => {
        const { scope: _, ...rest } = claims;
        const texts = words.map((one) => (typeof one === "string" ? one : one.join("")));
        const token = shared({ ...rest, [name]: asText ? texts.join(" ") : texts });
        const known = words.flatMap((one) => (typeof one === "string" ? [] : [one[1]]));
        expect((await credentials.check(token)).scopes).toEqual(new Set(known));
      }),
    );
    for (const scope of [7, null, { read: true }, [["read"]]]) {
      expect((await credentials.check(shared({ ...claims, scope }))).scopes).toEqual(new Set());
    }
  });

  it("that differs in anything is refused", async () => {
    const good = [
      { credentials: trusting(), token: await sign(key, claims) },
      { credentials: trusting(), token: await sign(keys[2]!, claims) },
      { credentials: sharing(), token: shared(claims) },
    ];
    for (const { credentials, token } of good) await credentials.check(token);
    const character = fc.oneof(
      fc.constantFrom(..."ABCDwxyz0189-_.=+/ \n\t"),
      fc.string({ minLength: 1, maxLength: 2, unit: "grapheme" }),
    );
    const edit = fc.record({ at: fc.nat(10_000), fromEnd: fc.boolean(), cut: fc.nat(3), put: character });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...good), edit, async ({ credentials, token }, how) => {
        // Half of them near the end, where base64url has bits to spare.
        const at = how.fromEnd ? token.length - (how.at % 4) : how.at % token.length;
        const changed = token.slice(0, at) + how.put + token.slice(at + how.cut);
        fc.pre(changed !== token);
        await expect(credentials.check(changed)).rejects.toThrow(refused);
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    ["another audience", { ...claims, aud: "billing" }],
    ["no audience", { ...claims, aud: undefined }],
    ["another issuer", { ...claims, iss: "https://login.example.evil" }],
    ["no issuer", { ...claims, iss: undefined }],
    ["no end", { ...claims, exp: undefined }],
    ["an end that is no number", { ...claims, exp: String(nowS + 600) as unknown as number }],
    ["a later beginning", { ...claims, nbf: nowS + 6 }],
    ["no tenant", { ...claims, tenant: undefined }],
    ["a tenant that leaves its folder", { ...claims, tenant: "../acme" }],
    ["a tenant that is a list", { ...claims, tenant: ["acme"] }],
    ["a payload that is no object", [claims]],
    ["a payload that is no JSON", "{"],
  ])("with %s is refused", async (_what, payload) => {
    await expect(sharing().check(shared(payload))).rejects.toThrow(refused);
    if (typeof payload === "string" || Array.isArray(payload)) return;
    await expect(trusting().check(await sign(key, payload as JWTPayload))).rejects.toThrow(refused);
  });

  it("that has expired is told so, five seconds after its end, even where it was good before", async () => {
    const token = await sign(key, claims);
    const credentials = trusting();
    for (const one of [credentials, trusting()]) {
      nowMs = (nowS + 605) * 1000 - 1;
      expect(await one.check(token)).toMatchObject({ endsMs: nowMs + 1 });
      nowMs += 1;
      await expect(one.check(token)).rejects.toThrow(ended);
    }
    const [header, , signature] = token.split(".");
    // Only to who has the whole token: a forged one learns nothing.
    await expect(
      credentials.check(`${header}.${encode({ ...claims, exp: 1 })}.${signature}`),
    ).rejects.toThrow(refused);
  });

  it("that ends after all dates ends with the last of them", async () => {
    for (const exp of ["1e20", "1e999", String(Number.MAX_SAFE_INTEGER)]) {
      const payload = JSON.stringify({ ...claims, exp: 0 }).replace('"exp":0', `"exp":${exp}`);
      const { endsMs } = await sharing().check(shared(payload));
      expect(new Date(endsMs).toISOString()).toBe("+275760-09-13T00:00:00.000Z");
    }
  });

  it("is all that lets in: what keys or an open server let in before is over", () => {
    for (const credential of ["open", "key:aaaaaaaaaaaa", ""])
      expect(sharing().isRevoked(credential)).toBe(true);
  });

  it("is over for what it let in when the secret, the issuer or the audience is another one", async () => {
    const { credential } = await sharing().check(shared(claims));
    expect(sharing().isRevoked(credential)).toBe(false);
    const others: readonly Partial<JwtOptions>[] = [
      { secret: `${secret}!` },
      { issuer: "https://other.example" },
      { audience: "billing" },
      { tenantClaim: "org" },
    ];
    for (const other of others) {
      expect(trusting({ jwksUrl: undefined, secret, ...other }).isRevoked(credential)).toBe(true);
    }
    expect(trusting().isRevoked(credential)).toBe(true);
  });

  it("may take its tenant from another claim, but from nothing it inherits", async () => {
    const name = "https://runwire.example/tenant";
    const credentials = trusting({ tenantClaim: name });
    expect(await credentials.check(await sign(key, { ...claims, [name]: "umbrella" }))).toMatchObject({
      tenant: "umbrella",
    });
    await expect(credentials.check(await sign(key, claims))).rejects.toThrow(refused);
    await expect(trusting({ tenantClaim: "constructor" }).check(await sign(key, claims))).rejects.toThrow(
      refused,
    );
  });
});

describe("a forger", () => {
  it("gets nowhere with alg none, in any spelling", async () => {
    for (const alg of ["none", "None", "NONE", "nOnE", "", null, undefined, ["RS256"]]) {
      for (const credentials of [trusting(), sharing()]) {
        await expect(credentials.check(forge({ alg }, claims))).rejects.toThrow(refused);
        await expect(credentials.check(forge({ alg, kid: key.kid }, claims, secret))).rejects.toThrow(
          refused,
        );
      }
    }
  });

  it("gets nowhere with the public key as a shared secret", async () => {
    const pem = await exportSPKI(key.publicKey);
    const jwk = await exportJWK(key.publicKey);
    for (const hmacKey of [pem, pem.trim(), JSON.stringify(jwk), jwk.n!, ""]) {
      const token = forge({ alg: "HS256", kid: key.kid }, claims, hmacKey);
      await expect(trusting().check(token)).rejects.toThrow(refused);
    }
    // And the other way round: a server with a secret takes no signatures of published keys.
    await expect(
      trusting({ jwksUrl: undefined, secret: pem }).check(await sign(key, claims)),
    ).rejects.toThrow(refused);
  });

  it.each(["HS384", "HS512"])("gets nowhere with %s", async (alg) => {
    const signed = `${encode({ alg })}.${encode(claims)}`;
    const hash = alg.replace("HS", "sha");
    const signature = createHmac(hash, secret).update(signed).digest("base64url");
    await expect(sharing().check(`${signed}.${signature}`)).rejects.toThrow(refused);
  });

  it("gets nowhere with keys in the header, and the server asks nobody for them", async () => {
    const own = await signingKey("RS256", key.kid);
    const evil = await issuer([own]);
    const jwk = await exportJWK(own.publicKey);
    for (const header of [
      { jwk },
      { jku: evil.url },
      { x5u: evil.url },
      { x5c: ["AAAA"] },
      { jwk, kid: undefined },
    ]) {
      await expect(trusting().check(await sign(own, claims, header))).rejects.toThrow(refused);
      // On a good token they are not looked at.
      expect(await trusting().check(await sign(key, claims, { ...header, kid: key.kid }))).toBeDefined();
    }
    expect(evil.asked).toBe(0);
    await evil.close();
  });

  it("gets nowhere with critical extensions that nobody here knows", async () => {
    for (const header of [
      { crit: ["exp"], exp: 1 },
      { crit: ["b64"], b64: false },
      { crit: [] },
      { crit: "x" },
    ]) {
      await expect(sharing().check(shared(claims, header))).rejects.toThrow(refused);
    }
  });

  it("gets nowhere with garbage or with more than 8 KiB, good or not", async () => {
    const large = shared({ ...claims, pad: "x".repeat(10_000) });
    const deep = shared(`${"[".repeat(4000)}${"]".repeat(4000)}`).slice(0, 8192);
    for (const credentials of [trusting(), sharing()]) {
      for (const token of [
        large,
        deep,
        "",
        ".",
        "..",
        "...",
        "a.b.c",
        "x".repeat(1e6),
        `${shared(claims)}.`,
        "🙂.🙂.🙂",
      ]) {
        await expect(credentials.check(token)).rejects.toThrow(refused);
      }
    }
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "binary" }), async (text) => {
        await expect(sharing().check(text)).rejects.toThrow(refused);
      }),
    );
  });

  it("cannot make the server flood the issuer with unknown keys", async () => {
    const credentials = trusting();
    await credentials.check(await sign(key, claims));
    const before = party.asked;
    for (let n = 0; n < 20; n += 1) {
      const token = await sign({ ...key, kid: `made up ${n}` }, claims);
      await expect(credentials.check(token)).rejects.toThrow(refused);
    }
    expect(party.asked).toBe(before);
  });
});

describe("an issuer", () => {
  it("may change its keys while the server runs", async () => {
    const credentials = trusting({ cooldownMs: 0 });
    const next = await signingKey("ES256", "the next key");
    const token = await sign(next, claims);
    await credentials.check(await sign(key, claims));
    await expect(credentials.check(token)).rejects.toThrow(refused);
    await party.publish([next]);
    expect(await credentials.check(token)).toMatchObject({ tenant: "acme" });
    await expect(credentials.check(await sign(key, { ...claims, jti: "2" }))).rejects.toThrow(refused);
  });

  it("is asked once for many tokens at once, and not at all for one seen before", async () => {
    const credentials = trusting();
    const before = party.asked;
    const tokens = await Promise.all(
      Array.from({ length: 20 }, (_, n) => sign(key, { ...claims, jti: String(n) })),
    );
    const callers = await Promise.all(tokens.map((token) => credentials.check(token)));
    expect(party.asked).toBe(before + 1);
    party.answer(500, "");
    nowMs += 5 * 60 * 1000 - 1;
    expect(await credentials.check(tokens[0]!)).toBe(callers[0]);
    // Five minutes later it is verified again.
    nowMs += 1;
    const again = await credentials.check(tokens[0]!);
    expect(again).toEqual(callers[0]);
    expect(again).not.toBe(callers[0]);
  });

  it.each([
    [500, "{}"],
    [301, ""],
    [200, "<html>"],
    [200, '{"keys":7}'],
  ])(
    "that answers %i %s is unreachable: the client may try again, and the issuer gets a pause",
    async (status, body) => {
      const token = await sign(key, claims);
      const credentials = trusting();
      party.answer(status, body);
      const before = party.asked;
      const unreachable = new RunwireError("KAI-AUTH-JWKS-0001");
      for (let n = 0; n < 5; n += 1) await expect(credentials.check(token)).rejects.toThrow(unreachable);
      expect(party.asked).toBe(before + 1);
      await party.publish(keys);
      monotonicMs += 999;
      await expect(credentials.check(token)).rejects.toThrow(unreachable);
      monotonicMs += 1;
      expect(await credentials.check(token)).toMatchObject({ tenant: "acme" });
    },
  );

  it("that does not answer at all is unreachable too", async () => {
    const gone = await issuer([]);
    await gone.close();
    const token = await sign(key, claims);
    const error: unknown = await trusting({ jwksUrl: gone.url })
      .check(token)
      .catch((cause: unknown) => cause);
    expect(error).toEqual(new RunwireError("KAI-AUTH-JWKS-0001"));
    expect((error as RunwireError).row).toMatchObject({ status: 503, retry: true });
  });
});

describe("settings that cannot be safe", () => {
  it.each([
    [{ secret: "short".padEnd(31, "!") }, "32 bytes"],
    [{ secret, jwksUrl: "https://login.example/jwks" }, "exactly one"],
    [{}, "exactly one"],
    [{ jwksUrl: "http://login.example/jwks" }, "use https"],
    [{ jwksUrl: "http://127.0.0.1.evil.example/jwks" }, "use https"],
    [{ jwksUrl: "file:///etc/passwd" }, "use https"],
    [{ jwksUrl: "https://user:word@login.example/jwks" }, "no user or password"],
    [{ jwksUrl: "jwks" }, "not an address"],
    [{ secret, issuer: "" }, "issuer"],
    [{ secret, audience: "" }, "audience"],
  ])("are refused at the start: %j", (given, problem) => {
    expect(() => jwtCredentials({ issuer: "i", audience: "a", clock, ...given })).toThrow(problem);
  });

  it.each(["http://localhost:1/", "http://[::1]:1/", "http://127.0.0.1/", "https://login.example/"])(
    "are not these: %s",
    (jwksUrl) => jwtCredentials({ issuer: "i", audience: "a", clock, jwksUrl }).close(),
  );
});
