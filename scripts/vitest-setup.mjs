// Before each test file: laws are tried with the same cases each time, unless RUNWIRE_SEED says with which.
import fc from "fast-check";

fc.configureGlobal({ seed: Number(process.env.RUNWIRE_SEED ?? 1) });
