import { existsSync, readdirSync } from "node:fs";
import { defineConfig } from "vitest/config";
import { BaseSequencer } from "vitest/node";

const isSoak = process.env.RUNWIRE_SOAK === "1";
// What computes, or starts processes of its own. Whatever has servers or timers in its process, or counts what that
// holds, has one to itself.
const sharing = ["protocol", "client", "cli"].map((name) => `packages/${name}/dist/**/*.test.js`);
// What takes longest with large counts, longest first. A machine that has run nothing yet goes by size, in which
// these are small: they would begin when all others are done.
const longestInSoak = [
  "sim/simulator",
  "sim/moments",
  "store-crash",
  "gateway/agent-killed",
  "gateway/crash",
  "gateway/disk-calls",
  "store-sqlite",
];
const noTests = ["**/node_modules/**", ...compiledWithoutSource()];

class LongestFirst extends BaseSequencer {
  async sort(files) {
    const rank = ({ moduleId }) => {
      const at = longestInSoak.findIndex((name) => moduleId.endsWith(`/${name}.test.js`));
      return at === -1 ? longestInSoak.length : at;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

// Tests run as compiled, so that workers and child processes load the very files that are published.
export default defineConfig({
  test: {
    // A worker loads what these test once, and not for each file.
    projects: [
      { extends: true, test: { name: "sharing", include: sharing, exclude: noTests, isolate: false } },
      {
        extends: true,
        test: { name: "apart", include: ["packages/*/dist/**/*.test.js"], exclude: [...noTests, ...sharing] },
      },
    ],
    // Whatever is no test is loaded by Node alone: as users have it, and quicker.
    server: { deps: { external: [/\/packages\/[^/]+\/dist\/(?!.*\.test\.js$)/] } },
    ...(isSoak && { sequence: { sequencer: LongestFirst } }),
    pool: "forks",
    // Most of a test is waiting for servers, disks and the demo's pauses.
    maxWorkers: 3,
    // A guard against what hangs, not a measure: machines that build and test at once are slow.
    testTimeout: isSoak ? 3_600_000 : 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    reporters: ["default", "./scripts/vitest-reporter.mjs"],
  },
});

// tsc never deletes: a test whose source was removed or renamed would run for ever.
function compiledWithoutSource() {
  return readdirSync("packages")
    .filter((name) => existsSync(`packages/${name}/dist`))
    .flatMap((name) =>
      readdirSync(`packages/${name}/dist`, { recursive: true })
        .filter((file) => file.endsWith(".test.js"))
        .filter((file) => !existsSync(`packages/${name}/src/${file.replace(/\.js$/, ".ts")}`))
        .map((file) => `packages/${name}/dist/${file}`),
    );
}
