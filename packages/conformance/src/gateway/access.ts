// Keys, and the routes that they open. The routes come from the server's own document, so that a new one is held to the
// rules of the gate from its first day.

import { join } from "node:path";
import type { Draft } from "@runwire/protocol";
import { vi } from "vitest";
import { ask, type Headers, type Question } from "./asking.js";
import { runPath, text } from "./calls.js";
import type { UnderTest } from "./under-test.js";

export const allScopes = ["read", "write", "control", "approve", "admin"] as const;
export type Scope = (typeof allScopes)[number];

/** A run that outlives every clock of its test. */
export async function newRun(url: string, headers: Headers): Promise<string> {
  const body = { prompt: "go", producer: "external", lease_ms: 86_400_000 };
  const {
    status,
    body: run,
    text: said,
  } = await ask(url, { method: "POST", path: "/v1/agent/runs", headers, body });
  if (status !== 201) throw new Error(`create: ${status} ${said}`);
  return run.run_id as string;
}

export async function write(
  url: string,
  headers: Headers,
  run_id: string,
  ...drafts: readonly Draft[]
): Promise<void> {
  const question = { method: "POST", path: runPath(run_id, "events"), headers, body: drafts };
  const { status, text: said } = await ask(url, question);
  if (status !== 200) throw new Error(`append: ${status} ${said}`);
}

export function bearer(token: string): { readonly Authorization: string } {
  return { Authorization: `Bearer ${token}` };
}

export type CreateKey = (
  path: string,
  wish: {
    readonly tenant: string;
    readonly scopes: readonly Scope[];
    readonly name: string;
    readonly lifeMs: number | undefined;
  },
  nowMs: number,
) => { readonly key: string; readonly record: { readonly id: string } };

export interface Key {
  readonly id: string;
  readonly key: string;
  readonly headers: { readonly Authorization: string };
}

export interface KeyWish {
  readonly scopes?: readonly Scope[];
  readonly lifeMs?: number;
  readonly nowMs?: number;
}

/** A key that the server, which looks at its file every now and then, already knows of. */
export async function newKey(
  create: CreateKey,
  server: UnderTest,
  tenant: string,
  wish: KeyWish = {},
): Promise<Key> {
  const made = writeKey(create, server.folder, tenant, wish);
  await expectSoon(
    () => statusFor(server, made),
    (status) => status !== 401,
  );
  return made;
}

/** A key in the file, whether or not a server has seen it. */
export function writeKey(create: CreateKey, folder: string, tenant: string, wish: KeyWish = {}): Key {
  const { scopes = allScopes, lifeMs, nowMs = Date.now() } = wish;
  const { key, record } = create(keysPath(folder), { tenant, scopes, name: "test", lifeMs }, nowMs);
  return { id: record.id, key, headers: bearer(key) };
}

export async function revoke(
  take: (path: string, id: string, nowMs: number) => unknown,
  server: UnderTest,
  key: Key,
): Promise<void> {
  take(keysPath(server.folder), key.id, Date.now());
  await expectSoon(
    () => statusFor(server, key),
    (status) => status === 401,
  );
}

async function statusFor({ url }: UnderTest, { headers }: Key): Promise<number> {
  return (await ask(url, { path: "/v1/session", headers })).status;
}

export async function expectSoon<T>(look: () => Promise<T>, holds: (seen: T) => boolean): Promise<void> {
  await vi.waitUntil(async () => holds(await look()), { interval: 20, timeout: 20_000 });
}

export function keysPath(folder: string): string {
  return join(folder, "keys.json");
}

export interface RouteUnderTest {
  /** `GET /v1/agent/runs/{id}` */
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly scope: Scope | "any" | "anyone";
  readonly streams: boolean;
  readonly takesTicket: boolean;
  /** Request headers that it understands. */
  readonly headers: readonly string[];
  /** One that it would take; undefined where it takes none. */
  readonly body: unknown;
}

interface Schema {
  readonly [member: string]: unknown;
}

interface Operation {
  readonly "x-runwire-scope": Scope | "any" | "anyone";
  readonly "x-runwire-streams"?: boolean;
  readonly security: readonly { readonly ticket?: unknown }[];
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: { readonly content: { readonly [type: string]: { readonly schema: Schema } } };
}

interface Document {
  readonly paths: { readonly [path: string]: { readonly [method: string]: Operation } };
  readonly components: { readonly schemas: { readonly [name: string]: Schema } };
}

export async function routesOf(url: string): Promise<readonly RouteUnderTest[]> {
  return routesIn((await ask(url, { path: "/openapi.json" })).body);
}

/** Those of a server's own document. */
export function routesIn(openapi: unknown): readonly RouteUnderTest[] {
  const { paths, components } = openapi as Document;
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([lower, operation]): RouteUnderTest => {
      const method = lower.toUpperCase();
      const schema = operation.requestBody?.content["application/json"]?.schema;
      return {
        name: `${method} ${path}`,
        method,
        path,
        scope: operation["x-runwire-scope"],
        streams: operation["x-runwire-streams"] === true,
        takesTicket: operation.security.some(({ ticket }) => ticket !== undefined),
        headers: operation.parameters.filter((one) => one.in === "header").map(({ name }) => name),
        body: schema === undefined ? undefined : exampleOf(schema, components.schemas),
      };
    }),
  );
}

/** The question that a route is for, with these values for the parameters of its path. */
export function questionFor(
  { method, path, body }: RouteUnderTest,
  params: { readonly [name: string]: string } = {},
): Question {
  const filled = path.replace(/\{([a-z_]+)\}/g, (_, name: string) => params[name] ?? "unknown_1");
  return { method, path: filled, ...(body === undefined ? {} : { body }) };
}

/** Over HTTP, and as a WebSocket where that is a way to ask. */
export function ways(
  route: RouteUnderTest,
  params?: { readonly [name: string]: string },
): readonly Question[] {
  const question = questionFor(route, params);
  return route.method === "GET" ? [question, { ...question, upgrade: true }] : [question];
}

/** Everything at once would be refused by the machine, not by the gate. */
export async function each<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const rest = [...items];
  const worker = async (): Promise<void> => {
    for (let item = rest.pop(); item !== undefined; item = rest.pop()) await act(item);
  };
  await Promise.all(Array.from({ length: 8 }, worker));
}

/** A value that a schema takes: what it asks for, and what may be anything. */
function exampleOf(schema: Schema, named: { readonly [name: string]: Schema }): unknown {
  const {
    $ref,
    examples,
    anyOf,
    type,
    minimum,
    items,
    properties,
    required = [],
  } = schema as {
    $ref?: string;
    examples?: readonly unknown[];
    anyOf?: readonly Schema[];
    type?: string;
    minimum?: number;
    items?: Schema;
    properties?: { readonly [name: string]: Schema };
    required?: readonly string[];
  };
  if ($ref?.endsWith("/Draft") === true) return text("intruder");
  if ($ref !== undefined) return exampleOf(named[$ref.split("/").at(-1) ?? ""] ?? {}, named);
  if (examples !== undefined) return examples[0];
  if ("const" in schema) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if (anyOf !== undefined) return exampleOf(anyOf[0] ?? {}, named);
  if (type === "object")
    return Object.fromEntries(
      Object.entries(properties ?? {})
        .filter(([name, member]) => required.includes(name) || Object.keys(member).length === 0)
        .map(([name, member]) => [name, exampleOf(member, named)]),
    );
  if (type === "array") return [exampleOf(items ?? {}, named)];
  if (type === "integer" || type === "number") return minimum ?? 1;
  return type === "boolean" ? true : "x";
}
