// The contract of a store, as laws that any implementation is held to. A law sees the store only through
// `StoreUnderTest` and the write path that the implementer puts on top of it, opens it anew in the middle, and
// holds its clock.
//
//   storeSuite("sqlite", (folder, clock, options) => …)
//
// What only one implementation has (files, segments, fsync) is tested beside that implementation.

import { describe } from "vitest";
import { childLaws } from "./store/children.js";
import { erasingLaws } from "./store/erasing.js";
import { grantLaws } from "./store/grants.js";
import { keyLaws } from "./store/keys.js";
import { leaseLaws } from "./store/leases.js";
import { listLaws } from "./store/lists.js";
import { logLaws } from "./store/log.js";
import { producerLaws } from "./store/producers.js";
import { settledLaws } from "./store/settled.js";
import { shapeLaws } from "./store/shape.js";
import { strangerLaws } from "./store/strangers.js";
import { tenantLaws } from "./store/tenants.js";
import { lawMsMax } from "./store/trial.js";
import type { Open } from "./store/under-test.js";

export function storeSuite(name: string, open: Open): void {
  describe(`the ${name} store`, { timeout: lawMsMax }, () => {
    logLaws(open);
    shapeLaws(open);
    childLaws(open);
    settledLaws(open);
    producerLaws(open);
    leaseLaws(open);
    keyLaws(open);
    listLaws(open);
    grantLaws(open);
    tenantLaws(open);
    erasingLaws(open);
    strangerLaws(open);
  });
}
