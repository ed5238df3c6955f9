const KiB = 1024;
const MiB = 1024 * KiB;

/** What a checkpoint may take at most. How many are kept is a setting. */
export const checkpointLimits = {
  /** Of all files together, before they are compressed. */
  bytesMax: 128 * MiB,
  /** Files, folders and links. */
  entriesMax: 10_000,
  /** Read, written and parsed at a time. */
  chunkBytes: 64 * KiB,
  /** What is told of an entry. */
  headerBytesMax: 64 * KiB,
  /** Trees whose last checkpoint is remembered, so that it need not be written again. */
  treesRememberedMax: 10_000,
  /** A file that changed so shortly before it was looked at may change again without another time. */
  recentNs: 2_000_000_000n,
  /** Of a tenant's quota: how far the oldest go once it is used up, so that not every checkpoint looks for them. */
  quotaLeft: 0.9,
  /** Trees that one sweep looks at, and how long after the last round the next begins. */
  treesPerSweep: 200,
  roundMs: 60 * 60 * 1000,
} as const;
