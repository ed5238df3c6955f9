// The shell blocks of a document as one script, so that a variable set in one block is there in the next. A document
// for those who run servers starts its own, as it says; for the others one is running.

import type { Fence } from "./markdown.js";

/** What a reader does once, in another terminal or before; the test has done it already. */
const setUp = /^(?:npm (?:ci|start|test|install|run)|git clone|cd )\b/;
/** NATS has a port of its own in a script: nothing else may be there. */
const natsPort = /\b4222\b/g;
const documentedAddress = /(127\.0\.0\.1|localhost):4700/g;

/** What a document starts and stops, as functions of the same script. */
const ownServer = [
  "SERVER=",
  "STARTED=()",
  'leave() { [ -z "$SERVER" ] || { kill "$SERVER"; wait "$SERVER" || true; SERVER=; }; }',
  "serve() {",
  '  leave; STARTED=("$@"); : > serve.out',
  '  node "$PROGRAM" serve --port "$SERVER_PORT" "$@" > serve.out & SERVER=$!',
  '  until grep -q listening serve.out; do kill -0 "$SERVER"; sleep 0.05; done',
  "}",
  "trap leave EXIT",
];

export function startsServers(blocks: readonly Fence[]): boolean {
  return blocks.some(({ text }) => /^npx runwire serve\b/m.test(text));
}

/**
 * Strict: a command that fails, a variable that was never set, and an HTTP error all fail the script. Every
 * curl is bounded; one that follows a run ends by itself because the run ends.
 */
export function shellScript(blocks: readonly Fence[], url: string, nats: string): string {
  const { port } = new URL(url);
  const lines = blocks
    .flatMap(({ text }) => text.split("\n"))
    .filter((line) => !setUp.test(line.trim()))
    .map((line) =>
      line
        .replace(documentedAddress, `$1:${port}`)
        .replace(natsPort, nats)
        .replace(/^npx runwire serve\b/, "serve")
        // Of what goes on in the background, `$!` is to be the process itself.
        .replace(/\bnpx runwire\b(?=.* &(?: |$))/, 'node "$PROGRAM"')
        .replace(/\bnpx runwire\b/, "runwire")
        .replace(/^systemctl stop runwire$/, "leave")
        .replace(/^systemctl start runwire$/, `serve "\${STARTED[@]}"`),
    );
  return [
    "set -euo pipefail",
    'curl() { command curl --fail-with-body --no-progress-meter --max-time 20 "$@"; }',
    'runwire() { node "$PROGRAM" "$@"; }',
    ...(startsServers(blocks) ? ownServer : []),
    ...lines,
    "",
  ].join("\n");
}
