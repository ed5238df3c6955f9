/** Worlds in which something once broke. They are lived through again each time. */
export const seedsThatFailed: readonly number[] = [
  // An answer whose body was cut off was taken for a refusal that no retry would change.
  7811723,
];
