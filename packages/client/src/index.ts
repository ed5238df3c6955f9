export { unlessAborted } from "./abort.js";
export type * from "./answers.js";
export { type Asked, followAsked } from "./asked.js";
export { type Backoff, backoff } from "./backoff.js";
export { type Clock, systemClock, wait } from "./clock.js";
export {
  type ApprovalAnswer,
  type Gateway,
  gateway,
  type PlanAnswer,
  type ProducerClaim,
} from "./control.js";
export { type FollowRunsOptions, followRuns, type RunChange } from "./feed.js";
export { type FollowOptions, follow } from "./follow.js";
export type { Endpoint, HeaderFields } from "./http.js";
export { type FollowMessagesOptions, followMessages } from "./messages.js";
export { openProducer, type Producer, type ProducerOptions } from "./producer.js";
export type { Followed } from "./reader.js";
export type { Status } from "./reconnect.js";
export { type OpenRun, type OpenRunOptions, openRun, type RunView } from "./run.js";
export { ndjsonSource } from "./sources/ndjson.js";
export type { RunStreamOptions } from "./sources/run-stream.js";
export { type RunsStreamOptions, runsSource } from "./sources/runs.js";
export type { Batches, Cursors, Ending, Source } from "./sources/source.js";
export { sseSource } from "./sources/sse.js";
export { type WebSocketStreamOptions, webSocketSource } from "./sources/websocket.js";
