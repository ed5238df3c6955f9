// The Go client in `clients/go`: its own tests, and what it writes and reads against a real gateway through a
// network that breaks.

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { follow, sseSource } from "@runwire/client";
import { coreTypes, type Event, koder, type NamedType } from "@runwire/protocol";
import { type Gateway, startGateway } from "@runwire/server";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { arbitraryDraftOf, namedTypes } from "./arbitraries.js";
import { type FaultProxy, faultProxy } from "./fault-proxy.js";
import { allEvents, createRun } from "./gateway/calls.js";
import { chance } from "./gateway/chance.js";
import { readAll, streamPath } from "./gateway/readers.js";
import { storyOfEveryType } from "./gateway/story.js";
import { tool } from "./tools.js";

const module = fileURLToPath(new URL("../../../clients/go/", import.meta.url));
// An empty cache is filled with Go's own library first: half a minute on a busy machine.
const buildMsMax = 240_000;
const programMsMax = 45_000;

const { program: go, whyNot } = tool("go");

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "runwire-go-"));
const environment = {
  ...process.env,
  GOCACHE: join(folder, "cache"),
  // Nobody debugs these programs, and linking them is quicker so.
  GOFLAGS: "-mod=mod -ldflags=-w",
  GOPROXY: "off",
  GOTOOLCHAIN: "local",
  // Without a C compiler too.
  CGO_ENABLED: "0",
};

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.skipIf(whyNot !== undefined)("the Go client", () => {
  const luck = chance("go");
  let gateway: Gateway;

  beforeAll(async () => {
    gateway = await startGateway({ port: 0, dataFolder: join(folder, "data"), durability: "os" });
    await goTool("build", "-o", `${join(folder, "bin")}/`, "./cmd/rwgo", "./example");
  }, buildMsMax);

  afterAll(() => gateway.close());

  it("is vetted, and passes its own tests over the golden files", { timeout: buildMsMax }, async () => {
    expect(await goTool("vet", "./...")).toBe("");
    expect(await goTool("test", "-vet=off", "./...")).toMatch(/^ok /m);
  });

  it("reads and writes back what TypeScript writes, byte by byte [RW-ENV-2] [RW-ENV-3]", async () => {
    const core = namedTypes.filter((type) => coreTypes.has(type));
    const lines = fc
      .sample(fc.constantFrom(...core).chain(arbitraryDraftOf), {
        seed: luck.whole(0, 2 ** 30),
        numRuns: 400,
      })
      .map((draft, i) => ({
        ...draft,
        id: `evt_${i}`,
        ts: "2026-05-14T19:42:13.124Z",
        run_id: "run_1",
        child_id: draft.child_id ?? null,
        seq: i + 1,
        pos: i + 1,
      }))
      .flatMap((e) => koder.step(null, e as Event<NamedType>)[1])
      .map(({ data }) => `${data}\n`);
    expect(await program("rwgo", ["check"], lines.join(""))).toBe(lines.join(""));
  });

  it("writes a run and reads it live through cuts, as TypeScript reads it [RW-CURSOR-1] [RW-PRODUCER-1]", async () => {
    const run_id = await createRun(gateway.url);
    const drafts = storyOfEveryType(luck.whole(0, 2 ** 30)).map((draft) => `${JSON.stringify(draft)}\n`);
    const proxies = await Promise.all([breaking(4, 6000), breaking(4, 6000), breaking(6, 500)]);
    const [forSse, forJsonl, forWriter] = proxies;
    const [sse, jsonl, typescript] = await Promise.all([
      program("rwgo", ["follow", "-base", forSse.url, "-run", run_id, "-wire", "sse"]),
      program("rwgo", ["follow", "-base", forJsonl.url, "-run", run_id, "-wire", "jsonl"]),
      followed(run_id),
      program("rwgo", ["write", "-base", forWriter.url, "-run", run_id, "-batch", "9"], drafts.join("")),
    ]);

    const stored = await readAll("ndjson", gateway.url, streamPath({ run_id }));
    expect(sse).toBe(stored.text);
    expect(jsonl).toBe(stored.text);
    expect(typescript.map(({ id }) => id)).toEqual(stored.events.map(({ id }) => id));
    expect(typescript.map(({ payload }) => payload)).toEqual(stored.events.map(({ payload }) => payload));
    // The server says some types by itself, as when a run ends with calls open; of the others each was said once.
    const own = (type: string): boolean => !/lifecycle|submitted|resolved|settled|tool\.end/.test(type);
    const said = (await allEvents(gateway.url, run_id)).map(({ type }) => type);
    const written = drafts.map((line) => (JSON.parse(line) as Event).type);
    expect(said.filter(own)).toEqual(written.filter(own));
    for (const proxy of proxies) {
      expect(proxy.counters.cuts).toBeGreaterThan(0);
      await proxy.close();
    }
  });

  it("says what is wrong with a run that is not there, and ends", async () => {
    const asked = program("rwgo", ["follow", "-base", gateway.url, "-run", "run_none"]);
    await expect(asked).rejects.toThrow(/KAI-RUN-/);
  });

  it("has an example that works", async () => {
    const printed = await program("example", [], "", { RUNWIRE_URL: gateway.url });
    expect(printed).toMatch(
      /^1 run\.lifecycle .*\n2 text\.delta \{"text":"Hello\."\}\n3 run\.lifecycle .*\n$/,
    );
  });

  /** Its first connections end somewhere in their answers. */
  function breaking(cuts: number, bytesMax: number): Promise<FaultProxy> {
    const { hostname, port } = new URL(gateway.url);
    return faultProxy({ host: hostname, port: Number(port) }, (n) =>
      n < cuts ? { cut: { afterBytes: luck.whole(0, bytesMax), how: luck.pick(["fin", "rst"]) } } : {},
    );
  }

  async function followed(run_id: string): Promise<readonly Event[]> {
    const events: Event[] = [];
    for await (const item of follow(sseSource({ base: gateway.url, run_id, dialect: "koder" }))) {
      if (item.kind === "event") events.push(item.event);
    }
    return events;
  }
});

/** Go's own tool, in the module; gives what it prints. */
async function goTool(...args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await run(go, args, { cwd: module, env: environment }).catch((failure) => {
    throw new Error(`go ${args.join(" ")}:\n${failure.stdout}${failure.stderr}`);
  });
  return stdout + stderr;
}

async function program(
  name: string,
  args: readonly string[],
  input = "",
  settings: { readonly [name: string]: string } = {},
): Promise<string> {
  const running = run(join(folder, "bin", name), args, {
    env: { ...process.env, ...settings },
    maxBuffer: 64 * 1024 * 1024,
    timeout: programMsMax,
  });
  running.child.stdin?.end(input);
  return (await running).stdout;
}
