// Every queue, buffer and loop has a limit, and each limit has a name here.

export const limits = {
  /** An event's payload as JSON text. */
  eventBytesMax: 8 * 1024 * 1024,
  /** A delta longer than this is split into several. */
  deltaBytesMax: 64 * 1024,
  /** A member of a control event whose JSON text is longer than this is spilled to a blob. */
  memberBytesMax: 64 * 1024,
  /** What an event keeps of a text that was spilled. */
  previewCharsMax: 1024,
  /** Members that an event names as redacted, and the longest pointer that names one. */
  redactedNamesMax: 100,
  redactedCharsMax: 512,
  /** A group that has joined this much is emitted at once. */
  groupBytesMax: 1024 * 1024,
  /** Where more groups of a run wait than this, the oldest is emitted at once. */
  groupsMax: 256,
  /** Two text or reasoning events of one run that no control event separates are this far apart. */
  tickMs: 100,
  /** A connection that has once reached the head skips deltas when it is further behind than this. */
  lagBytesMax: 1024 * 1024,
  /** One append: events and bytes. */
  batchEventsMax: 10_000,
  batchBytesMax: 16 * 1024 * 1024,
  /** One line of NDJSON. */
  lineBytesMax: 8 * 1024 * 1024 + 64 * 1024,
  /** The body of a request that is not an append. */
  controlBytesMax: 4 * 1024 * 1024,
  /** The same where no credential is needed: anybody may send it, and to read it takes the time of all. */
  strangerBytesMax: 16 * 1024,
  /** A run's `metadata` as JSON text: it stays with the run's head, and goes into every list. */
  metadataBytesMax: 64 * 1024,
  /** What is sent to a server: levels of JSON, and keys of all its objects together. */
  jsonDepthMax: 64,
  jsonKeysMax: 10_000,
  /** Levels that a reader takes: far more than a server makes of what it was sent, and few enough for any stack. */
  readDepthMax: 256,
  /** Levels of children below a root. */
  childDepthMax: 8,
  /** Live children of one run. */
  liveChildrenMax: 1000,
  /** Tool calls of one run that have not ended, and requests of it that nobody has answered. */
  openCallsMax: 256,
  openRequestsMax: 256,
  /** Nodes that one run has entered and not left, for whoever has to know which one is spoken in. */
  openNodesMax: 64,
  /** Requests of one run, answered ones too: no id is asked under twice, so all are remembered. */
  requestsPerRunMax: 10_000,
  /** Numbers of a run's `usage` that are summed up, and the longest name of one. */
  usageNamesMax: 200,
  usageNameCharsMax: 100,
  /** What people have said to a run and it has not taken up. */
  steersWaitingMax: 100,
  leaseMsDefault: 30_000,
  leaseMsMin: 1000,
  leaseMsMax: 24 * 60 * 60 * 1000,
  keepaliveMs: 15_000,
  /** Runs on one multiplexed connection. */
  runsPerStreamMax: 50,
  /** A page of `/events` and of the run list. */
  pageEventsMax: 1000,
  /** A page of `/events` or of a list ends with what makes it this large, however little it holds. */
  pageBytesMax: 16 * 1024 * 1024,
  pageRunsMax: 200,
  /** Children that a run's record names; a page of them tells of the others. */
  childrenShownMax: 1000,
  /** What a turn is handed of the turns before it. */
  historyMessagesMax: 50,
  historyBytesMax: 256 * 1024,
  /** Items that an answer or a snapshot of the inbox holds; there may wait more. */
  inboxItemsMax: 1000,
  producersPerRunMax: 1000,
  /** Logs of one input that are told apart at a time; the one that was silent longest is forgotten. */
  logsReadMax: 1000,
  /** Messages of a foreign stream that wait for an earlier one, and those that are remembered to know them again. */
  messagesEarlyMax: 64,
  messagesSeenMax: 10_000,
  feedEntriesMax: 10_000,
  feedAgeMs: 7 * 24 * 60 * 60 * 1000,
} as const;
