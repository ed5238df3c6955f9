export {
  arbitraryDraft,
  arbitraryDraftOf,
  arbitraryEvent,
  arbitraryId,
  arbitraryPayloads,
  arbitraryScope,
  arbitraryTime,
  namedTypes,
} from "./arbitraries.js";
export { arbitraryFacts, arbitraryJson, arbitraryText } from "./arbitrary-json.js";
export { type ArbitraryRun, type ArbitraryRunOptions, arbitraryRun, eventsOf } from "./arbitrary-runs.js";
export { type FaultCounters, type FaultPlan, type FaultProxy, faultProxy } from "./fault-proxy.js";
