// The route table as OpenAPI 3.1. Nothing is written twice: what is checked is what is told.

import { errorTable } from "@runwire/protocol";
import { z } from "zod";
import type { Answer, Route } from "./route.js";
import { error } from "./shapes.js";

interface Schema {
  readonly [member: string]: unknown;
}

/** Schemas that have a name of their own, and are referred to by it. */
type Named = Map<string, Schema>;

export function openapi(routes: readonly Route[], version: string): object {
  const named: Named = new Map();
  const paths: { [path: string]: { [method: string]: object } } = {};
  for (const route of routes) {
    const path = route.path.replace(/:([a-z_]+)/g, "{$1}");
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = operation(route, named);
  }
  const refusal = { description: errorText(), content: json(schemaOf(error, "output", named)) };
  return {
    openapi: "3.1.0",
    info: {
      title: "Runwire",
      version,
      summary: "One durable log for every agent run, on every wire.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    paths,
    components: {
      schemas: Object.fromEntries(named),
      responses: { Refused: refusal },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "an API key or a JSON Web Token" },
        ticket: { type: "apiKey", in: "query", name: "ticket", description: "a stream ticket" },
        session: { type: "apiKey", in: "cookie", name: "runwire_session", description: "the console's" },
      },
    },
  };
}

function operation(route: Route, named: Named): object {
  const { method, path, does, scope, ticket, answers, streams } = route;
  const answersTold = Object.entries(answers).map(([status, answer]) => [status, told(answer, named)]);
  return {
    operationId: nameOf(method, path),
    summary: does,
    tags: [tagOf(path)],
    "x-runwire-scope": scope,
    ...(streams ? { "x-runwire-streams": true } : {}),
    parameters: [...pathParams(path), ...queryParams(route, named), ...headerParams(route)],
    ...bodyOf(route, named),
    responses: { ...Object.fromEntries(answersTold), default: { $ref: "#/components/responses/Refused" } },
    security:
      scope === "anyone"
        ? []
        : [{ bearer: [] }, { session: [] }, ...(ticket === null ? [] : [{ ticket: [] }])],
  };
}

function told({ does, content = {} }: Answer, named: Named): object {
  const types = Object.entries(content).map(([type, schema]) => [
    type,
    { schema: schemaOf(schema, "output", named) },
  ]);
  return { description: does, ...(types.length === 0 ? {} : { content: Object.fromEntries(types) }) };
}

function bodyOf({ body, raw }: Route, named: Named): object {
  if (body !== null) {
    // None is read as an object without members.
    const required = !body.safeParse({}).success;
    return { requestBody: { required, content: json(schemaOf(body, "input", named)) } };
  }
  if (raw === null) return {};
  const types = Object.entries(raw).map(([type, schema]) => [
    type,
    { schema: schemaOf(schema, "input", named) },
  ]);
  return { requestBody: { required: true, content: Object.fromEntries(types) } };
}

function pathParams(path: string): readonly object[] {
  return [...path.matchAll(/:([a-z_]+)/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
}

function queryParams({ query }: Route, named: Named): readonly object[] {
  const { properties = {}, required = [] } = schemaOf(query, "input", named) as {
    properties?: { [name: string]: Schema };
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: "query",
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema,
  }));
}

function headerParams({ headers }: Route): readonly object[] {
  return Object.entries(headers).map(([name, description]) => ({
    name,
    in: "header",
    required: false,
    description,
    schema: { type: "string" },
  }));
}

function schemaOf(schema: z.ZodType, io: "input" | "output", named: Named): Schema {
  const made = z.toJSONSchema(schema, { io, reused: "inline", unrepresentable: "any" });
  const {
    $schema: _,
    $defs = {},
    ...rest
  } = rewritten(made) as Schema & { $defs?: { [name: string]: Schema } };
  for (const [name, definition] of Object.entries($defs)) named.set(name, withoutId(definition));
  const { id } = rest as { id?: string };
  if (id === undefined) return rest;
  named.set(id, withoutId(rest));
  return { $ref: `#/components/schemas/${id}` };
}

/** References point into this document, not into the schema they were made in. */
function rewritten(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value).replaceAll("#/$defs/", "#/components/schemas/"));
}

function withoutId({ id: _, ...schema }: Schema): Schema {
  return schema;
}

function json(schema: Schema): object {
  return { "application/json": { schema } };
}

/** `/v1/agent/runs/:id/events` with POST is `post_agent_runs_id_events`. */
function nameOf(method: string, path: string): string {
  const words = path.replace(/^\/v1/, "").replace(/[^a-z_]+/g, "_");
  return `${method.toLowerCase()}${words}`;
}

function tagOf(path: string): string {
  if (!path.startsWith("/v1/")) return "operations";
  return path.startsWith("/v1/agent/") ? "runs" : (path.split("/")[2] ?? "");
}

function errorText(): string {
  const codes = Object.entries(errorTable).map(([code, { status, title }]) => `${status} ${code} ${title}`);
  return `A refusal. The status goes with the code:\n${codes.toSorted().join("\n")}`;
}
