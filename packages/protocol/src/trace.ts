// A run as a trace of OpenTelemetry, by its conventions for generative AI: the run and its descendants are agents that
// are invoked, each request to a model is a chat, each call is a tool that is executed. What was said is not in it.
//
//   invoke_agent ─┬─ chat
//                 ├─ execute_tool spawn ── invoke_agent (the child) ── …
//                 └─ execute_tool web.fetch

import { type Event, type Facts, is } from "./events.js";
import { isFinal } from "./state.js";

/** A span as OTLP writes it in JSON. */
export interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: 1 | 3;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly OtlpAttribute[];
  readonly status: { readonly code: 0 | 1 | 2; readonly message?: string };
}

interface OtlpAttribute {
  readonly key: string;
  readonly value:
    | { readonly stringValue: string }
    | { readonly intValue: string }
    | { readonly doubleValue: number }
    | { readonly arrayValue: { readonly values: readonly { readonly stringValue: string }[] } };
}

/** The body of `POST /v1/traces`. */
export interface OtlpTrace {
  readonly resourceSpans: readonly [
    {
      readonly resource: { readonly attributes: readonly OtlpAttribute[] };
      readonly scopeSpans: readonly [
        {
          readonly scope: { readonly name: string; readonly version: string };
          readonly spans: readonly OtlpSpan[];
        },
      ];
    },
  ];
}

interface Open {
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly name: string;
  readonly kind: 1 | 3;
  readonly startMs: number;
  readonly attributes: Facts;
}

export interface Tracer {
  hear(e: Event): void;
  /** What has ended, and what is still open as if it ended with the last event. */
  spans(): readonly OtlpSpan[];
}

/** Hears a run's log from its beginning; its descendants are in there too. */
export function tracer(run_id: string): Tracer {
  const done: { readonly span: Open; readonly endTs: string; readonly status: OtlpSpan["status"] }[] = [];
  // By what they belong to: `run <producer>`, `chat <producer>`, `tool <producer> <call>`.
  const open = new Map<string, Open>();
  /** The span that a child's belongs under. */
  const parents = new Map<string, string>();
  let traceId = hexOf(run_id, 32);
  let remoteParent: string | null = null;
  let lastTs = "1970-01-01T00:00:00.000Z";

  function begin(name: string, span: Open): void {
    if (!open.has(name)) open.set(name, span);
  }

  function end(name: string, ts: string, status: OtlpSpan["status"], more: Facts = {}): void {
    const span = open.get(name);
    if (span === undefined) return;
    open.delete(name);
    done.push({ span: { ...span, attributes: { ...span.attributes, ...more } }, endTs: ts, status });
  }

  function hear(e: Event): void {
    const { id, ts } = e;
    lastTs = ts;
    const by = e.child_id ?? run_id;
    const run = `run ${by}`;
    const chat = `chat ${by}`;
    const callOf = (call_id: unknown): string => `tool ${by} ${String(call_id)}`;
    const within = open.get(run)?.spanId ?? null;
    if (is(e, "run.lifecycle")) {
      const { state, reason } = e.payload;
      const parentSpanId =
        e.child_id === null ? remoteParent : (parents.get(by) ?? open.get(`run ${run_id}`)?.spanId ?? null);
      const attributes = { "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.id": by };
      begin(run, {
        spanId: hexOf(by, 16),
        parentSpanId,
        name: "invoke_agent",
        kind: 1,
        startMs: Date.parse(ts),
        attributes,
      });
      if (!isFinal(state)) return;
      end(chat, ts, { code: 2, message: `the run was ${state}` });
      const failed = state === "done" ? {} : { "error.type": state };
      end(run, ts, state === "done" ? { code: 1 } : { code: 2, message: reason ?? state }, failed);
    } else if (is(e, "turn.submitted")) {
      const { trace_id, span_id } = e.scope ?? {};
      if (e.child_id === null && isHex(trace_id, 32)) traceId = trace_id;
      if (e.child_id === null && isHex(span_id, 16)) remoteParent = span_id;
      const { session_id, agent } = e.payload;
      const span = open.get(run);
      if (span === undefined) return;
      open.set(run, {
        ...span,
        parentSpanId: e.child_id === null ? remoteParent : span.parentSpanId,
        name: typeof agent === "string" ? `invoke_agent ${agent}` : span.name,
        attributes: {
          ...span.attributes,
          "gen_ai.agent.name": agent,
          "gen_ai.conversation.id": session_id,
        },
      });
    } else if (is(e, "child.spawn")) {
      const { child_id, call_id } = e.payload;
      const calling = open.get(callOf(call_id))?.spanId ?? within;
      if (calling !== null) parents.set(child_id, calling);
    } else if (is(e, "model.requested")) {
      begin(chat, chatSpan(id, Date.parse(ts), within, e.payload));
    } else if (is(e, "model.completed")) {
      const { model, finish_reason, usage } = e.payload as Facts & { usage?: Facts };
      end(
        chat,
        ts,
        { code: 1 },
        {
          "gen_ai.response.model": model,
          "gen_ai.response.finish_reasons": finish_reason === undefined ? undefined : [String(finish_reason)],
          "gen_ai.usage.input_tokens": usage?.input_tokens,
          "gen_ai.usage.output_tokens": usage?.output_tokens,
        },
      );
    } else if (is(e, "model.failed")) {
      const { kind, message, wait_ms } = e.payload as Facts;
      const asked = open.get(chat);
      end(chat, ts, { code: 2, message: String(message ?? "") }, { "error.type": String(kind ?? "failed") });
      // It is asked again, after this long.
      if (asked !== undefined && typeof wait_ms === "number") {
        begin(chat, { ...asked, spanId: hexOf(id, 16), startMs: Date.parse(ts) + wait_ms });
      }
    } else if (is(e, "tool.start")) {
      const { call_id, tool } = e.payload;
      const attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.call.id": call_id,
      };
      begin(callOf(call_id), {
        spanId: hexOf(id, 16),
        parentSpanId: within,
        name: `execute_tool ${tool}`,
        kind: 1,
        startMs: Date.parse(ts),
        attributes,
      });
    } else if (is(e, "tool.end")) {
      const { call_id, ok, error } = e.payload;
      const code = typeof error === "string" ? error : error?.code;
      if (ok) end(callOf(call_id), ts, { code: 1 });
      else
        end(
          callOf(call_id),
          ts,
          { code: 2, message: String(code ?? "failed") },
          { "error.type": code ?? "failed" },
        );
    }
  }

  return {
    hear,
    spans: () => [
      ...done.map(({ span, endTs, status }) => written(traceId, span, endTs, status)),
      ...[...open.values()].map((span) => written(traceId, span, lastTs, { code: 0 })),
    ],
  };
}

export function otlpTrace(spans: readonly OtlpSpan[], version: string): OtlpTrace {
  const attributes = attributesOf({ "service.name": "runwire", "service.version": version });
  const scope = { name: "runwire", version };
  return { resourceSpans: [{ resource: { attributes }, scopeSpans: [{ scope, spans }] }] };
}

function chatSpan(id: string, startMs: number, parentSpanId: string | null, payload: Facts): Open {
  const { model, provider } = payload;
  const attributes = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": model,
    "gen_ai.provider.name": provider,
  };
  const name = typeof model === "string" ? `chat ${model}` : "chat";
  return { spanId: hexOf(id, 16), parentSpanId, name, kind: 3, startMs, attributes };
}

function written(traceId: string, span: Open, endTs: string, status: OtlpSpan["status"]): OtlpSpan {
  const { spanId, parentSpanId, name, kind, startMs, attributes } = span;
  return {
    traceId,
    spanId,
    ...(parentSpanId === null ? {} : { parentSpanId }),
    name,
    kind,
    startTimeUnixNano: nanos(startMs),
    endTimeUnixNano: nanos(Math.max(startMs, Date.parse(endTs))),
    attributes: attributesOf(attributes),
    status,
  };
}

/** The last that 64 bits of nanoseconds can tell. */
const msMax = 18_446_744_073_709;

/** Producers may say that they wait for any number. */
function nanos(ms: number): string {
  const whole = Math.min(Math.max(Math.round(ms), 0), msMax);
  return whole === 0 ? "0" : `${whole}000000`;
}

/** Those that have a value. */
function attributesOf(facts: Facts): readonly OtlpAttribute[] {
  return Object.entries(facts).flatMap(([key, value]): readonly OtlpAttribute[] => {
    if (typeof value === "string") return [{ key, value: { stringValue: value } }];
    if (Number.isSafeInteger(value)) return [{ key, value: { intValue: String(value) } }];
    if (typeof value === "number") return [{ key, value: { doubleValue: value } }];
    if (!Array.isArray(value)) return [];
    return [{ key, value: { arrayValue: { values: value.map((one) => ({ stringValue: String(one) })) } } }];
  });
}

function isHex(text: string | undefined, digits: 16 | 32): text is string {
  return text !== undefined && text.length === digits && /^[0-9a-f]+$/.test(text) && !/^0+$/.test(text);
}

const letters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** The same digits for the same id, always. A ULID is 128 bits; of any other id a hash is taken. */
function hexOf(id: string, digits: 16 | 32): string {
  const ulid = /(?:^|_)([0-7][0-9A-HJKMNP-TV-Z]{25})$/.exec(id)?.[1];
  const bits =
    ulid === undefined
      ? (hashOf(id) << 64n) | hashOf(`${id} `)
      : [...ulid].reduce((sum, letter) => sum * 32n + BigInt(letters.indexOf(letter)), 0n);
  const hex = bits.toString(16).padStart(32, "0").slice(-digits);
  return /^0+$/.test(hex) ? `${hex.slice(1)}1` : hex;
}

/** FNV-1a, 64 bits, over what is written in an id. */
function hashOf(text: string): bigint {
  let hash = 0xcbf29ce484222325n;
  for (let i = 0; i < text.length; i++)
    hash = ((hash ^ BigInt(text.charCodeAt(i))) * 0x100000001b3n) & 0xffffffffffffffffn;
  return hash;
}
