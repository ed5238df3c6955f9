// An event as a store holds it: the JSON text of its payload, parsed on first use. The envelope is laid
// out so that the `koder` form is a prefix of the `runwire` form, and both are spliced, never re-made:
//
//   {"id":…,"ts":…,"type":…,"run_id":…,"child_id":…,"seq":…,"payload":{…}   ,"pos":…[,"scope":{…}]}
//   └──────────────────────── koder, closed with `}` ──────────────────────┘

import type { Event, EventType, PayloadOf, Scope } from "./events.js";

export class StoredEvent implements Event {
  #payload: PayloadOf<EventType> | undefined;
  #scope: Scope | undefined;
  readonly #prefix: string | undefined;

  constructor(
    readonly id: string,
    readonly ts: string,
    readonly type: EventType,
    readonly run_id: string,
    readonly child_id: string | null,
    readonly pos: number,
    readonly seq: number,
    readonly payloadText: string,
    readonly scopeText: string | null,
    /** The `koder` form without its last brace, where the store has it as it is. */
    koderPrefix?: string,
  ) {
    this.#prefix = koderPrefix;
  }

  get koderPrefix(): string {
    return this.#prefix ?? envelope(this, this.payloadText);
  }

  get payload(): PayloadOf<EventType> {
    this.#payload ??= JSON.parse(this.payloadText) as PayloadOf<EventType>;
    return this.#payload;
  }

  // Absent where there is none, as in a parsed event: a getter cannot be, so it reads undefined.
  get scope(): Scope {
    if (this.scopeText === null) return undefined as never;
    this.#scope ??= JSON.parse(this.scopeText) as Scope;
    return this.#scope;
  }

  toJSON(): unknown {
    return JSON.parse(runwireText(this));
  }
}

export function koderText(e: Event): string {
  return `${koderPrefix(e)}}`;
}

export function runwireText(e: Event): string {
  const scope =
    e instanceof StoredEvent ? e.scopeText : e.scope === undefined ? null : JSON.stringify(e.scope);
  return `${koderPrefix(e)},"pos":${e.pos}${scope === null ? "" : `,"scope":${scope}`}}`;
}

function koderPrefix(e: Event): string {
  return e instanceof StoredEvent ? e.koderPrefix : envelope(e, JSON.stringify(e.payload));
}

// Ids, types and times hold no character that JSON escapes, so they are quoted as they are.
function envelope(e: Event, payload: string): string {
  const child = e.child_id === null ? "null" : `"${e.child_id}"`;
  return `{"id":"${e.id}","ts":"${e.ts}","type":"${e.type}","run_id":"${e.run_id}","child_id":${child},"seq":${e.seq},"payload":${payload}`;
}
