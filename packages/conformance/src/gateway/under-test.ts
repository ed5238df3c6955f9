// The gateway of a test file: a server on a folder of its own, started before the tests and gone after them. How it is
// started is the file's to say; what it does is judged from outside.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";

interface Running {
  readonly url: string;
  close(): Promise<void>;
}

interface Clock {
  now(): number;
  monotonic(): number;
}

/** A clock that runs, and can be put forward: time passes, but only for the server. */
export function forwardClock(): Clock & { pass(ms: number): void } {
  let aheadMs = 0;
  return {
    now: () => Date.now() + aheadMs,
    monotonic: () => performance.now() + aheadMs,
    pass(ms) {
      aheadMs += ms;
    },
  };
}

export interface UnderTest {
  readonly url: string;
  readonly folder: string;
  /** Leaves and starts again on the same folder and port. */
  restart(): Promise<void>;
}

/** `given` is added to a free port, a fresh folder and a durability that tests can wait for. */
export function underTest<S extends object>(
  start: (settings: S, clock?: Clock) => Promise<Running>,
  given: NoInfer<S> | ((folder: string) => NoInfer<S>) = {} as S,
  clock?: Clock,
): UnderTest {
  const folder = mkdtempSync(join(tmpdir(), "runwire-gateway-"));
  let running: Running | undefined;

  async function open(port: number): Promise<void> {
    const own = typeof given === "function" ? given(folder) : given;
    const settings = { dataFolder: folder, durability: "os", ...own, port } as unknown as S;
    running = await start(settings, clock);
  }
  const url = (): string => running?.url ?? "";

  beforeAll(() => open(0));
  afterAll(async () => {
    await running?.close();
    rmSync(folder, { recursive: true });
  });
  return {
    folder,
    get url() {
      return url();
    },
    async restart() {
      const { port } = new URL(url());
      await running?.close();
      await open(Number(port));
    },
  };
}
