const KiB = 1024;
const MiB = 1024 * KiB;

/** What is told of files at most. */
export const artifactLimits = {
  /** Changed files of one call that are told one by one; of the others it is told how many they are. */
  changesMax: 50,
  /** A file whose content is kept, and all of a call's together. */
  contentBytesMax: 4 * MiB,
  contentsBytesMax: 16 * MiB,
  /** A larger one has no version either: it is not read at all. */
  versionBytesMax: 64 * MiB,
  /** A file that is compared with what it was, before and after. */
  comparedBytesMax: 256 * KiB,
  /** What is read before a call, so that there is something to compare with. */
  oldsBytesMax: 8 * MiB,
  previewCharsMax: 1024,
  /** Lines that two files may differ in before the difference is told as one block. */
  diffEditsMax: 500,
} as const;
