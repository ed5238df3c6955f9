export { beginningOf } from "./beginning.js";
export * from "./conversation.js";
export * from "./dialect.js";
export { dialects } from "./dialects/index.js";
export { koder } from "./dialects/koder.js";
export type { LoomCall, LoomNode, LoomRun } from "./dialects/loom/book.js";
export { loom, loomExport } from "./dialects/loom/loom.js";
export { type LoomReader, loomReader } from "./dialects/loom/reader.js";
export { loomNames, words as loomWords } from "./dialects/loom/words.js";
export { runtime, runtimeJsonRpc, runtimeStrict } from "./dialects/runtime/index.js";
export {
  emptyRuntimeModel,
  type RuntimeEntry,
  type RuntimeModel,
  type RuntimeTask,
  readInto,
} from "./dialects/runtime/model.js";
export { type RuntimeName, runtimeNames } from "./dialects/runtime/names.js";
export {
  type RuntimeReader,
  type RuntimeReading,
  type RuntimeWarning,
  runtimeReader,
} from "./dialects/runtime/reader.js";
export { runtimeSchemas } from "./dialects/runtime/schemas.js";
export {
  type RuntimeMessage,
  runtimeSchemaVersion,
  runtimeTypes,
  strictSchemaVersion,
} from "./dialects/runtime/types.js";
export {
  type RuntimeProfile,
  runtimeRules,
  runtimeValidator,
  validateRuntime,
} from "./dialects/runtime/validate.js";
export { runwire } from "./dialects/runwire.js";
export { type Elsewhere, elsewhere } from "./elsewhere.js";
export * from "./errors.js";
export * from "./events.js";
export {
  type EvidencePack,
  type EvidenceRefs,
  type Evidencer,
  evidenceRefs,
  evidencer,
  type LogDigest,
  type Signal,
} from "./evidence.js";
export { type Mine, mineOf, newFold, withMember, withoutMember } from "./folding.js";
export { type LineSplitter, lineSplitter } from "./framing/ndjson.js";
export * from "./framing/sse.js";
export { type Approvals, type Given, givenBy, isNamedBy, namedByAll } from "./given.js";
export * from "./ids.js";
export * from "./inbox.js";
export * from "./limits.js";
export * from "./logs.js";
export { type NodeText, nodeTexts } from "./nodes.js";
export * from "./parse.js";
export { reduce, reduceAll } from "./reduce.js";
export { type Decision, type Review, type Reviewer, reviewer } from "./review.js";
export * from "./state.js";
export { koderText, runwireText, StoredEvent } from "./stored-event.js";
export type { Attempt, Task, Tasks } from "./tasks.js";
export { type OtlpSpan, type OtlpTrace, otlpTrace, type Tracer, tracer } from "./trace.js";
export * from "./transcript.js";
export * from "./usage.js";
export * from "./validate.js";
