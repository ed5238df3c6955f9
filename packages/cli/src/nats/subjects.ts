// Where things are on NATS. Events, requests and what is to be written have roots of their own: a stream that captures
// events must not capture requests, or JetStream would answer them.
//
//   runwire.events.<tenant>.<run>.<dialect>   the messages of a run
//   runwire.ask.<tenant>.<run>.<dialect>      request: a snapshot, or messages after a number
//   runwire.in.<tenant>.<run>                 request: events to append
//   runwire.bridge.<tenant>.<dialect>         how far the bridge has come; its own

export interface Subjects {
  readonly allEvents: string;
  readonly asked: string;
  readonly written: string;
  readonly checkpoint: string;
  events(run_id: string): string;
}

const runToken = 3;

export function subjectsOf(prefix: string, tenant: string, dialect: string): Subjects {
  const whose = tokenOf(tenant);
  return {
    allEvents: `${prefix}.events.${whose}.*.${dialect}`,
    asked: `${prefix}.ask.${whose}.*.${dialect}`,
    written: `${prefix}.in.${whose}.*`,
    checkpoint: `${prefix}.bridge.${whose}.${dialect}`,
    events: (run_id) => `${prefix}.events.${whose}.${tokenOf(run_id)}.${dialect}`,
  };
}

/** An id may hold a dot, which would part it in two: what is not plain is written as `%` and two hex digits. */
export function tokenOf(id: string): string {
  return id.replace(/[^A-Za-z0-9_:-]/g, (char) =>
    [...Buffer.from(char)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join(""),
  );
}

/** The run that a subject names; the prefix may have dots too. */
export function runIn(subject: string, prefix: string): string {
  const token = subject.slice(prefix.length).split(".")[runToken] ?? "";
  try {
    return decodeURIComponent(token);
  } catch {
    // No id looks like this; the server says so.
    return token;
  }
}
