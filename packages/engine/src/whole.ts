// Large members of events lie beside the log. Whoever goes on from the log needs them whole: a call with its input, a
// result with its output.

import { type Event, type Facts, isObject } from "@runwire/protocol";
import type { AgentHost } from "@runwire/server";

/** The event as it was written; itself where nothing was spilled. */
export async function wholeEvent(host: AgentHost, tenant: string, event: Event): Promise<Event> {
  const { spilled } = event.payload as Facts;
  // Children read their own.
  if (!isObject(spilled) || event.child_id !== null) return event;
  const members = await Promise.all(
    Object.entries(spilled).map(async ([member, where]) => {
      const { blob_ref, media_type } = where as { blob_ref: string; media_type: string };
      const bytes = await host.blob(tenant, blob_ref);
      if (bytes === undefined) throw new Error(`${blob_ref} of ${event.id} is missing`);
      const text = bytes.toString();
      return [member, media_type === "application/json" ? JSON.parse(text) : text] as const;
    }),
  );
  const { id, ts, type, run_id, child_id, pos, seq, scope } = event;
  const payload = { ...event.payload, ...Object.fromEntries(members) };
  const named = scope === undefined ? {} : { scope };
  return { id, ts, type, run_id, child_id, pos, seq, payload, ...named } as Event;
}
