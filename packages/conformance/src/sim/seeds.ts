import type { LifeName } from "./lives.js";

/** Worlds in which something once broke. They are lived through again each time. */
export const seedsThatFailed: readonly { readonly life: LifeName; readonly seed: number }[] = [
  // An answer whose body was cut off was taken for a refusal that no retry would change.
  { life: "runs", seed: 7811723 },
  // A keep-alive that found room before all had drained made the server forget a reader that waited for that.
  { life: "agents", seed: 281284782 },
  // A producer that came back was told its number after it had decided what to say, and said it twice.
  { life: "trees", seed: 243813901 },
  // A run that began and ended in one commit was seen in the file before its events were in memory: ended, and empty.
  { life: "trees", seed: 1695978091 },
  // Who followed the list of runs was told of a run that a server which was killed had not stored yet.
  { life: "agents", seed: 1176778652 },
  // A tool that spoke after its call was called off kept the whole server from ever doing anything else.
  { life: "agents", seed: 1656803975 },
  // A reader that had not yet taken all of its stream was cut off by a server that left, as if it had broken.
  { life: "runs", seed: 5003 },
];
