// The route table as one page, without a script or anything from elsewhere.

import { createHash } from "node:crypto";
import { z } from "zod";
import type { Route } from "./route.js";

const style = `
:root { color-scheme: light dark; --line: #8884; --dim: light-dark(#5f6670, #9aa3ad); --mark: light-dark(#1d5fc4, #7db0ff); }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; display: grid; grid-template-columns: 23rem minmax(0, 1fr); }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1rem; box-sizing: border-box;
  border-right: 1px solid var(--line); font-size: 13px; }
nav h2 { margin: 1rem 0 .2rem; font-size: 13px; color: var(--dim); }
nav a { display: flex; padding: .1rem 0; text-decoration: none; color: inherit; overflow-wrap: anywhere; }
nav a:hover, nav a:focus { color: var(--mark); }
a { color: var(--mark); }
main { padding: 1rem 2rem 4rem; max-width: 56rem; }
h1 { margin: .2rem 0; } h2 { margin: 2.5rem 0 .4rem; } h2::first-letter { text-transform: uppercase; }
section { border-top: 1px solid var(--line); padding: .8rem 0; scroll-margin-top: 1rem; }
h3 { margin: .4rem 0; font: 600 15px ui-monospace, monospace; overflow-wrap: anywhere; display: flex; }
b { flex: none; width: 3.9rem; color: var(--mark); }
small { color: var(--dim); font-size: 13px; font-weight: normal; }
code { font: .93em ui-monospace, monospace; }
table { border-collapse: collapse; width: 100%; font-size: 14px; margin: .2rem 0 .7rem; }
td { border-top: 1px solid var(--line); padding: .25rem .6rem .25rem 0; vertical-align: top; }
td:first-child { font-family: ui-monospace, monospace; overflow-wrap: anywhere; width: 12rem; }
pre { background: #8881; padding: .6rem .8rem; overflow: auto; border-radius: 4px; font-size: 13px; }
@media (max-width: 50rem) {
  body { display: block; } main { padding: 1rem; } td:first-child { width: 8rem; }
  nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line); }
}
`;

export const docsPolicy = `default-src 'none'; style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`;

export function docsPage(routes: readonly Route[], version: string): string {
  const groups = new Map<string, Route[]>();
  for (const route of routes) {
    const name = groupOf(route);
    groups.set(name, [...(groups.get(name) ?? []), route]);
  }
  const linkTo = (route: Route): string => `<a href="#${anchor(route)}">${heading(route)}</a>`;
  const links = [...groups].map(([name, list]) => `<h2>${name}</h2>${list.map(linkTo).join("")}`);
  const parts = [...groups].map(([name, list]) => `<h2>${name}</h2>${list.map(section).join("")}`);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Runwire ${escaped(version)}</title><style>${style}</style></head>
<body><nav><strong>Runwire</strong> ${escaped(version)}${links.join("")}</nav>
<main><h1>Runwire</h1><p>One durable log for every agent run, on every wire. For programs:
<a href="/openapi.json">openapi.json</a>.</p>${parts.join("")}</main></body></html>`;
}

function section(route: Route): string {
  const { does, scope, headers, answers, body, raw, ticket } = route;
  const held = heldBy(scope);
  const tickets = ticket === null ? "" : ", or a stream ticket";
  const bodies = body === null ? Object.entries(raw ?? {}) : [["application/json", body] as const];
  return `<section id="${anchor(route)}"><h3>${heading(route)}</h3>
<p>${prose(does)} <small>— ${held}${tickets}</small></p>
${table("query", membersOf(route.query))}${table(
  "headers",
  Object.entries(headers).map(([name, text]) => ({ name, text })),
)}${bodies
  .map(([type, schema]) => table(`body, ${type}`, membersOf(schema), describe(schema)))
  .join("")}${table(
  "answers",
  Object.entries(answers).map(([status, { does: text, content = {} }]) => ({
    name: status,
    text: [text, Object.keys(content).join(", ")].filter((part) => part !== "").join(" — "),
  })),
)}<pre>${escaped(curl(route))}</pre></section>`;
}

function heldBy(scope: Route["scope"]): string {
  if (scope === "anyone") return "no credential needed";
  return scope === "any" ? "any credential" : `scope <code>${scope}</code>`;
}

interface Row {
  readonly name: string;
  readonly text: string;
}

function table(title: string, rows: readonly Row[], text = ""): string {
  if (rows.length === 0 && text === "") return "";
  const lines = rows.map(({ name, text: of }) => `<tr><td>${escaped(name)}</td><td>${prose(of)}</td></tr>`);
  return `<small>${escaped(title)}${text === "" ? "" : `: ${prose(text)}`}</small><table>${lines.join("")}</table>`;
}

function membersOf(schema: z.ZodType): readonly Row[] {
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  return Object.entries(properties).map(([name, of]) => {
    const { description = "" } = of as { description?: string };
    const needed = required.includes(name) ? "needed" : "";
    return { name, text: [kindOf(of), needed, description].filter((part) => part !== "").join("; ") };
  });
}

function describe(schema: z.ZodType): string {
  return schema.description ?? "";
}

/** A schema in a few words. */
function kindOf(schema: unknown): string {
  const {
    type,
    enum: choices,
    anyOf,
    const: only,
    minimum,
    maximum,
    items,
  } = schema as { [m: string]: unknown };
  if (Array.isArray(anyOf))
    return [...new Set(anyOf.map(kindOf).filter((kind) => kind !== "null"))].join(" or ");
  if (Array.isArray(choices)) return choices.join(" | ");
  if (only !== undefined) return JSON.stringify(only);
  if (type === "array") return `array of ${kindOf(items)}`;
  const range = minimum === undefined || maximum === undefined ? "" : ` from ${minimum} to ${maximum}`;
  return `${typeof type === "string" ? type : "any JSON"}${range}`;
}

function curl({ method, path, scope, body, raw, streams }: Route): string {
  const parts = [`curl${streams ? " -N" : ""}${method === "GET" ? "" : ` -X ${method}`}`];
  if (scope !== "anyone") parts.push('-H "Authorization: Bearer $RUNWIRE_TOKEN"');
  if (body !== null || raw !== null) parts.push("-H 'Content-Type: application/json' -d @body.json");
  parts.push(`"$RUNWIRE_URL${path.replace(/:([a-z_]+)/g, (_, name: string) => `$${name.toUpperCase()}`)}"`);
  return parts.join(" \\\n  ");
}

function heading({ method, path }: Route): string {
  return `<b>${method}</b><span>${escaped(path)}</span>`;
}

function anchor({ method, path }: Route): string {
  return `${method}${path}`.toLowerCase().replace(/[^a-z_]+/g, "-");
}

function groupOf({ path, streams }: Route): string {
  if (!path.startsWith("/v1/")) return "operations";
  if (!path.startsWith("/v1/agent/")) return "access and data";
  return streams ? "streams" : "runs";
}

/** Escaped, with what stands in backticks as code. */
function prose(text: string): string {
  return escaped(text).replace(/`([^`]+)`/g, "<code>$1</code>");
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}
