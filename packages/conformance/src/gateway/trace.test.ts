// Runs as traces of OpenTelemetry.

import { startGateway } from "@runwire/server";
import { describe, expect, it } from "vitest";
import { append, call, createRun, lifecycle, runPath, say } from "./calls.js";
import { freshChildId } from "./story.js";
import { underTest } from "./under-test.js";

const server = underTest(startGateway, {});

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code: number };
  readonly attributes: readonly { readonly key: string; readonly value: object }[];
}

async function spansOf(run_id: string): Promise<readonly Span[]> {
  const { body } = await call(server.url, "GET", runPath(run_id, "trace"));
  const [{ scopeSpans }] = body.resourceSpans as [{ scopeSpans: [{ spans: readonly Span[] }] }];
  return scopeSpans[0].spans;
}

/** Names as a tree: each span with what is below it. */
function tree(spans: readonly Span[], parent?: string): object {
  const isHere = ({ parentSpanId }: Span): boolean =>
    parent === undefined ? !spans.some(({ spanId }) => spanId === parentSpanId) : parentSpanId === parent;
  return Object.fromEntries(
    spans.filter(isHere).map((span) => [`${span.name} ${span.status.code}`, tree(spans, span.spanId)]),
  );
}

describe("a run's trace", () => {
  it("has the run, its requests to models, its tools and its children, each in its place [RW-TRACE-1]", async () => {
    const run_id = await createRun(server.url, { agent: "demo" });
    const child = freshChildId();
    await append(
      server.url,
      run_id,
      say("model.requested", { model: "m1", provider: "p" }),
      say("text.delta", { text: "a secret" }),
      say("model.completed", {
        model: "m1",
        finish_reason: "calls",
        usage: { input_tokens: 12, output_tokens: 3 },
      }),
      say("tool.start", { call_id: "c1", tool: "spawn", input: { prompt: "a secret" } }),
      say("child.spawn", { child_id: child, call_id: "c1" }),
      say("model.requested", { model: "m2" }, child),
      say("model.failed", { kind: "overloaded", message: "busy", wait_ms: 5 }, child),
      say("model.completed", { model: "m2" }, child),
      lifecycle("done", child),
      say("tool.end", { call_id: "c1", ok: true, output: "a secret" }),
      say("tool.start", { call_id: "c2", tool: "web.fetch" }),
      say("tool.end", { call_id: "c2", ok: false, error: { code: "KAI-RUN-TOOL-0002" } }),
      lifecycle("done"),
    );
    const spans = await spansOf(run_id);
    expect(tree(spans)).toEqual({
      "invoke_agent demo 1": {
        "chat m1 1": {},
        "execute_tool spawn 1": { "invoke_agent demo 1": { "chat m2 2": {}, "chat m2 1": {} } },
        "execute_tool web.fetch 2": {},
      },
    });
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
    for (const span of spans) {
      expect(span.traceId).toMatch(/^[0-9a-f]{32}$/);
      expect(span.spanId).toMatch(/^[0-9a-f]{16}$/);
      expect(BigInt(span.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(span.startTimeUnixNano));
    }
    const chat = spans.find(({ name }) => name === "chat m1");
    expect(chat?.attributes).toEqual(
      expect.arrayContaining([
        { key: "gen_ai.usage.input_tokens", value: { intValue: "12" } },
        {
          key: "gen_ai.response.finish_reasons",
          value: { arrayValue: { values: [{ stringValue: "calls" }] } },
        },
      ]),
    );
    expect(JSON.stringify(spans)).not.toContain("secret");
    expect(await spansOf(run_id)).toEqual(spans);
  });

  it("keeps calls of several children apart that have the same id [RW-TRACE-1]", async () => {
    const run_id = await createRun(server.url, { agent: "demo" });
    const [one, two] = [freshChildId(), freshChildId()];
    await append(
      server.url,
      run_id,
      say("child.spawn", { child_id: one }),
      say("child.spawn", { child_id: two }),
      say("tool.start", { call_id: "call_1", tool: "read" }, one),
      say("tool.start", { call_id: "call_1", tool: "write" }, two),
      say("tool.end", { call_id: "call_1", ok: false, error: { code: "x" } }, two),
      say("tool.end", { call_id: "call_1", ok: true }, one),
      lifecycle("done", one),
      lifecycle("done", two),
      lifecycle("done"),
    );
    const calls = (await spansOf(run_id)).filter(({ name }) => name.startsWith("execute_tool"));
    expect(calls.map(({ name, status }) => [name, status.code]).sort()).toEqual([
      ["execute_tool read", 1],
      ["execute_tool write", 2],
    ]);
  });

  it("is a part of the trace that its creator named, and a bad name changes nothing [RW-TRACE-2]", async () => {
    const [trace, span] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"];
    const make = async (traceparent: string): Promise<Span | undefined> => {
      const body = { prompt: "x", producer: "external" };
      const made = await call(server.url, "POST", "/v1/agent/runs", body, { traceparent });
      expect(made.status).toBe(201);
      return (await spansOf(String(made.body.run_id)))[0];
    };
    expect(await make(`00-${trace}-${span}-01`)).toMatchObject({ traceId: trace, parentSpanId: span });
    for (const bad of ["", "00", `00-${trace}`, `ff-${trace}-${span}-01`, `00-${"0".repeat(32)}-${span}-01`])
      expect((await make(bad))?.parentSpanId).toBeUndefined();
  });
});
