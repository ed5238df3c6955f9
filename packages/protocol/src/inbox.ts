// What waits for a person, and how a reader keeps it: a snapshot, and then each change folded onto it.

import type { Facts } from "./events.js";

export interface InboxItem extends Facts {
  /** Names the item among all of the tenant's. */
  readonly item_id: string;
  readonly kind: "approval" | "clarify" | "plan";
  /** The run that asks, which may be a child. */
  readonly run_id: string;
  readonly root_id: string;
  readonly session_id: string | null;
  /** What the answer is sent to; null for a plan without an id. */
  readonly request_id: string | null;
  readonly asked_at: string;
  readonly expires_at: string | null;
  /** The root's. */
  readonly title: string | null;
  /** The beginning of what its run was asked. */
  readonly prompt_preview: string | null;
}

/** What waits for a person, oldest first; `foldInbox` keeps it from the stream after `pos`. */
export interface Inbox {
  readonly pos: number;
  readonly items: readonly InboxItem[];
  /** With those beyond the limit. */
  readonly total: number;
}

/** What a change says: an item that is new or differs, one that is gone, or a root's new title. */
export type InboxChange =
  | { readonly item: InboxItem }
  | { readonly gone: string }
  | { readonly title: string; readonly root_id: string };

/** A message of the inbox's stream. */
export type InboxMessage =
  | {
      readonly type: "snapshot";
      readonly pos: number;
      /** Whether the reader's cursor was not kept: what it had is void. */
      readonly reset: boolean;
      readonly items: readonly InboxItem[];
      /** With those that the snapshot had no room for. */
      readonly total: number;
    }
  | {
      readonly type: string;
      readonly pos: number;
      readonly run_id: string;
      readonly payload: InboxChange | Facts;
    };

/** The inbox after one more message, oldest first. A message that says nothing of it leaves it as it is. */
export function foldInbox(items: readonly InboxItem[], message: InboxMessage): readonly InboxItem[] {
  if ("items" in message) return message.items;
  const { type, run_id, payload } = message;
  if (type === "x.runwire.erased") return items.filter((item) => item.run_id !== run_id);
  if ("item" in payload) {
    const item = payload.item as InboxItem;
    const at = items.findIndex(({ item_id }) => item_id === item.item_id);
    return at < 0 ? [...items, item] : items.with(at, item);
  }
  if ("gone" in payload) return items.filter(({ item_id }) => item_id !== payload.gone);
  const { title, root_id } = payload as { title?: string; root_id?: string };
  if (title === undefined || root_id === undefined) return items;
  return items.map((item) => (item.root_id === root_id ? { ...item, title } : item));
}
