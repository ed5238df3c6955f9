// What a tool may use at most. Each limit has a name here.

const KiB = 1024;
const MiB = 1024 * KiB;

export const toolLimits = {
  /** Faults of an input that the model is told of at once. */
  faultsToldMax: 5,

  pathCharsMax: 1024,
  /** Folders in folders, also for a listing. */
  pathNamesMax: 16,
  /** What one `file.read` gives. */
  readBytesMax: MiB,
  /** A file that `file.write` makes, and one that `file.read` opens. */
  fileBytesMax: 4 * MiB,
  listEntriesMax: 1000,
  /** Files and folders of one workspace. */
  workspaceEntriesMax: 2000,
  workspaceBytesMax: 64 * MiB,
  /** Writes that wait for another one in the same workspace. */
  writesWaitingMax: 64,

  fetchMs: 20_000,
  fetchBytes: 256 * KiB,
  fetchBytesMax: MiB,
  redirectsMax: 5,

  /** Between asking a process group to end and ending it. */
  groupGraceMs: 500,
  /** How long output that is still in a pipe is waited for, once the group is gone. */
  groupDrainMs: 250,

  shellMs: 60_000,
  shellMsMax: 600_000,
  /** Shown while it runs; what comes after is in the result only, as far as it fits. */
  shellSaidBytesMax: 64 * KiB,
  /** Kept of the beginning and of the end of what a command prints. */
  shellHeadBytes: 32 * KiB,
  shellTailBytes: 32 * KiB,

  mcpConnectMs: 10_000,
  mcpCallMs: 60_000,
  /** A server that does not answer a ping within this time after a call has timed out counts as hung. */
  mcpPingMs: 2000,
  /** How long a server may take to end its session when it is closed. */
  mcpCloseMs: 1000,
  /** After a server could not be reached, runs do without it for this long before it is tried again. */
  mcpRetryMs: 30_000,
  /** How long whoever begins such a try waits for it. */
  mcpAgainMsMax: 3000,
  mcpToolsMax: 256,
  mcpDescriptionCharsMax: 4096,
  mcpSchemaCharsMax: 64 * KiB,
  mcpResultCharsMax: 4 * MiB,
  mcpErrorCharsMax: 4096,
  /** A word of a server's settings that is shorter is no key, and hides nothing of an error. */
  mcpSecretCharsMin: 4,
  /** Before a stream that broke off is gone on with, whatever the server asks for. */
  mcpResumeMs: 500,
  /** One message of a server. */
  mcpMessageBytesMax: 8 * MiB,
} as const;
