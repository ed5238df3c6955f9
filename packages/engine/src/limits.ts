// Every queue, buffer and loop of the agent has a limit, and each limit has a name here.

export const limits = {
  callsPerAnswerMax: 64,
  /** Calls of one answer that run at once. */
  callsAtOnceMax: 5,
  /** A title or suggestions that take longer are left out. */
  afterthoughtMsMax: 2000,
  /** How long a question waits for an answer before the agent goes on by itself. */
  questionMs: 120_000,
  /** How long a tool waits for somebody's approval before it counts as denied. */
  approvalMs: 300_000,
  stepsMax: 200,
} as const;
