export const hookLimits = {
  /** What a command may answer. */
  stdoutBytesMax: 4 * 1024 * 1024,
  /** What is told of a command's reason. */
  stderrBytesMax: 4096,
} as const;
