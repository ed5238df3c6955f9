// Runs after the default reporter: what failed as soon as it does, because a soak ends an hour later, and why one was
// skipped; the seconds each test file took, then the counts alone on the last line.
export default class SummaryReporter {
  #startedMs = 0;

  onTestRunStart() {
    this.#startedMs = performance.now();
  }

  onTestCaseResult(test) {
    const { state, errors = [], note } = test.result();
    if (note !== undefined) process.stdout.write(`skipped: ${test.fullName}: ${note}\n`);
    if (state !== "failed") return;
    for (const { message, cause } of errors)
      process.stdout.write(
        `${test.fullName}: ${message}\n${cause === undefined ? "" : `${cause.message}\n`}`,
      );
  }

  onTestRunEnd(modules, unhandledErrors) {
    const rows = modules
      .map((module) => ({ file: module.relativeModuleId, ms: fileMs(module) }))
      .sort((a, b) => b.ms - a.ms);
    rows.push({ file: "all, as they ran side by side", ms: performance.now() - this.#startedMs });
    const lines = rows.map(({ file, ms }) => `${(ms / 1000).toFixed(2).padStart(8)} s  ${file}`);
    process.stdout.write(`${lines.join("\n")}\n\n${countLine(modules, unhandledErrors)}\n`);
  }
}

function fileMs(module) {
  const { collectDuration, duration, environmentSetupDuration, prepareDuration, setupDuration } =
    module.diagnostic();
  return collectDuration + duration + environmentSetupDuration + prepareDuration + setupDuration;
}

// A file that failed without a failed test (it did not load, a hook threw) counts as one failure, and so
// does an error outside any test: "0 failed" is only printed when nothing failed.
function countLine(modules, unhandledErrors) {
  const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
  for (const module of modules) {
    const failedBefore = counts.failed;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      counts[state === "passed" || state === "failed" ? state : "skipped"] += 1;
    }
    if (module.state() === "failed" && counts.failed === failedBefore) counts.failed += 1;
  }
  const { passed, failed, skipped } = counts;
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}
