export function fail(error: unknown): void {
  process.stderr.write(`runwire: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
