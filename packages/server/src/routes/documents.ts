// The server tells what it does: as OpenAPI for programs, as a page for people.

import { RunwireError, runtimeSchemas } from "@runwire/protocol";
import { z } from "zod";
import { docsPage, docsPolicy } from "../http/docs-page.js";
import { openapi } from "../http/openapi.js";
import { type Reply, type Route, route } from "../http/route.js";
import { json, members } from "../http/shapes.js";

/** `routes` are all the others; these are added to what they tell. */
export function documentRoutes(routes: readonly Route[], version: string): readonly Route[] {
  const own: readonly Route[] = [
    route({
      method: "GET",
      path: "/openapi.json",
      does: "this server's routes, as OpenAPI 3.1",
      scope: "anyone",
      answers: { 200: { does: "the document", content: json(members({ openapi: z.string() })) } },
      handle: async () => ({ status: 200, text: text() }),
    }),
    route({
      method: "GET",
      path: "/docs",
      does: "the same, to read",
      scope: "anyone",
      answers: { 200: { does: "a page", content: { "text/html": z.string() } } },
      handle: async () => ({
        status: 200,
        text: page(),
        headers: { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": docsPolicy },
      }),
    }),
    route({
      method: "GET",
      path: "/schemas/:name",
      does: "the JSON Schema of that name: `runtime-event`, `runtime-event-strict` or `runtime-snapshot`",
      scope: "anyone",
      answers: { 200: { does: "the schema", content: { "application/schema+json": members({}) } } },
      handle: async ({ param }) => schema(param("name")),
    }),
  ];
  const all = [...routes, ...own];
  // Made when first asked for: it takes a while, and nothing of it changes.
  const text = once(() => JSON.stringify(openapi(all, version)));
  const page = once(() => docsPage(all, version));
  return own;
}

function schema(name: string): Reply {
  const found = Object.hasOwn(runtimeSchemas, name) ? runtimeSchemas[name] : undefined;
  if (found === undefined) throw new RunwireError("KAI-REQUEST-PATH-0001");
  return { status: 200, text: JSON.stringify(found), headers: { "Content-Type": "application/schema+json" } };
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
