// Every await of the write path, as it is come to: where something can happen to a server.

export const moments = [
  /** A piece of a request that writes is about to reach the server. */
  "arriving",
  /** The store is asked for something in the name of such a request. */
  "reading",
  /** It has answered, and nobody knows. */
  "read",
  /** A blob is about to be stored. */
  "putting",
  /** It is stored, and nobody knows. */
  "put",
  /** A write to the database is asked for. */
  "asked",
  /** It is about to be stored. */
  "before",
  /** It is stored, and nobody knows. */
  "after",
  /** A piece of the answer is about to reach whoever asked. */
  "answering",
] as const;
export type Moment = (typeof moments)[number];

export interface Awaits {
  struck(moment: Moment): void;
  /** Is called at every moment, until it is called off. */
  watch(seen: (moment: Moment) => void): () => void;
}

export function awaits(): Awaits {
  const watching = new Set<(moment: Moment) => void>();
  return {
    struck(moment) {
      for (const seen of watching) seen(moment);
    },
    watch(seen) {
      watching.add(seen);
      return () => void watching.delete(seen);
    },
  };
}
