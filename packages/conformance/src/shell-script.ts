// The shell blocks of a document as one script, so that a variable set in one block is there in the next.

import type { Fence } from "./markdown.js";

/** What a reader does once, in another terminal or before; the test has done it already. */
const setUp = /^(?:npm (?:ci|start|test|install|run)|git clone|cd )\b/;
const documentedAddress = "127.0.0.1:4700";

/**
 * Strict: a command that fails, a variable that was never set, and an HTTP error all fail the script. Every
 * curl is bounded; one that follows a run ends by itself because the run ends.
 */
export function shellScript(blocks: readonly Fence[], url: string): string {
  const lines = blocks
    .flatMap(({ text }) => text.split("\n"))
    .filter((line) => !setUp.test(line.trim()))
    .map((line) => line.replaceAll(documentedAddress, new URL(url).host));
  return [
    "set -euo pipefail",
    'curl() { command curl --fail-with-body --no-progress-meter --max-time 20 "$@"; }',
    // Finding what to start takes npx longer than most of it runs.
    'npx() { "./node_modules/.bin/$@"; }',
    ...lines,
    "",
  ].join("\n");
}
