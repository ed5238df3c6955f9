export const hookLimits = {
  /** What a command may answer. */
  stdoutBytesMax: 4 * 1024 * 1024,
  /** What is told of a command's reason. */
  stderrBytesMax: 4096,
  /** How long output that is still in a pipe is waited for, once the command is gone. */
  drainMs: 250,
} as const;
