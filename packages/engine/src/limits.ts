// Every queue, buffer and loop of the agent has a limit, and each limit has a name here, or in the
// `limits.ts` of its folder.

export const limits = {
  /** Steps of a plan: as many as a person may send back. */
  planStepsMax: 100,
  callsPerAnswerMax: 64,
  /** Calls of one answer, or parts of a graph, that run at once. */
  callsAtOnceMax: 5,
  /** How long a tool that has to stop may take to do so before it is no longer waited for. */
  toolGraceMs: 1000,
  /** A title or suggestions that take longer are left out. */
  afterthoughtMsMax: 2000,
  /** What they are made from: so much of what was asked, and of the answer. */
  afterthoughtCharsMax: 4000,
  titleCharsMax: 80,
  suggestionsMax: 3,
  suggestionCharsMax: 120,
  /** How long a question waits for an answer before the agent goes on by itself. */
  questionMs: 120_000,
  /** How long a tool waits for somebody's approval before it counts as denied. */
  approvalMs: 300_000,
  stepsMax: 200,
  /** How long a run waits that could not be written, before it is tried again. */
  storeWaitMs: 1000,
  /** A tree of thoughts: so many thoughts are asked for at a time, and as many are kept … */
  thoughtsAsked: 3,
  thoughtsMax: 5,
  thoughtCharsMax: 500,
  /** … so deep, with so many ways back, and with so many asks in all. */
  thoughtDepthMax: 3,
  backtracksMax: 2,
  searchAsksMax: 16,
  /** A level whose best thought scores less leads nowhere. */
  thoughtScoreMin: 0.5,
  /** How often one step of a strategy is asked for before it goes on with what there is. */
  strategyTriesMax: 2,
  /** What is read of an answer to such an ask. */
  strategyCharsMax: 64 * 1024,
  /** A graph of thoughts: its nodes, first and last, and how often and by how many it may grow. */
  graphNodesMax: 12,
  expansionsMax: 3,
  nodesPerExpansionMax: 3,
  nodeTaskCharsMax: 2000,
  nodeResultCharsMax: 8000,
  nodeSummaryCharsMax: 200,
  /** What estimates are made from: so many of a tenant's last runs, and of their events … */
  historyRunsMax: 50,
  historyEventsMax: 20_000,
  /** … read within this time, and kept for that long, for so many tenants. */
  historyReadMsMax: 1000,
  historyMs: 60_000,
  historyTenantsMax: 100,
  /** How long a model may take to begin an answer (a local one as long as it may be silent) … */
  firstPartMsMax: 60_000,
  /** … to go on with it: one that thinks unseen is silent for minutes … */
  silenceMsMax: 5 * 60_000,
  /** … and to end it. */
  answerMsMax: 30 * 60_000,
  /** How often one answer is asked for, and for how long, before the run gives up. */
  triesMax: 5,
  triesMsMax: 10 * 60_000,
  /** Waits between tries: the first is up to this long, each further one up to twice the one before. */
  backoffMsFirst: 500,
  backoffMsMax: 30_000,
  /** What a model gets of one result of a tool: so much of its beginning, and of its end … */
  resultHeadBytes: 64 * 1024,
  resultTailBytes: 32 * 1024,
  /** … and of a conversation so many pictures, of so much base64 together: so many are taken at any size. */
  picturesMax: 20,
  pictureCharsMax: 16 * 1024 * 1024,
  /** What is kept of a provider's own words about a failure. */
  failureCharsMax: 500,
} as const;
