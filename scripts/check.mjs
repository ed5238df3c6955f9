// The whole check: build, lint, test, and how long each took. Stops at the first phase that fails.
// The test phase's time is in its reporter's table, because the counts are the last line.
import { spawnSync } from "node:child_process";

const phases = [
  { name: "build", command: "npm run --silent build" },
  { name: "lint", command: "npm run --silent lint" },
  { name: "test", command: "vitest run" },
];

for (const { name, command } of phases) {
  const startedMs = performance.now();
  const { status } = spawnSync(command, { shell: true, stdio: "inherit" });
  if (status !== 0) {
    if (name !== "test") console.error(`${name} failed`);
    process.exit(status ?? 1);
  }
  if (name !== "test") console.log(`${name}: ${((performance.now() - startedMs) / 1000).toFixed(1)} s`);
}
