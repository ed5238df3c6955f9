// The agent behind a real gateway, on whatever model the environment gives, asked and read over HTTP.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Draft, type Event, type Facts, parseDraft } from "@runwire/protocol";
import { type MakeAgent, type Settings, startGateway } from "@runwire/server";
import { afterAll } from "vitest";
import { demoModel } from "../demo/model.js";
import { engine } from "../engine.js";
import type { Model } from "../model.js";
import { type Choice, chooseModel, type ModelEnv } from "../providers/choose.js";
import type { Tool } from "../tool.js";
import { type FakeProvider, fakeProvider } from "./fake-provider.js";

export interface Served {
  readonly url: string;
  /** Which keys and addresses there are, from the next run on. */
  given(env: ModelEnv, limits?: Choice["limits"]): void;
  close(): Promise<void>;
}

export interface ServedOptions {
  readonly tools?: readonly Tool[];
  /** Called before the agent's drafts are stored. */
  readonly before?: (run_id: string, drafts: readonly Draft[]) => Promise<void>;
  /** In place of whatever model the environment gives. */
  readonly model?: () => Model;
  /** Puts something around the agent. */
  readonly around?: (makeAgent: MakeAgent) => MakeAgent;
}

export async function served({
  tools = [lookTool],
  before,
  model,
  around = (makeAgent) => makeAgent,
}: ServedOptions = {}): Promise<Served> {
  const dataFolder = mkdtempSync(join(tmpdir(), "runwire-served-"));
  let env: ModelEnv = {};
  let limits: Choice["limits"];
  const demo = demoModel({ wordMs: 0 });
  const modelOf = (name: string | null) =>
    model?.() ?? chooseModel(name, { env, demo, ...(limits === undefined ? {} : { limits }) });
  const settings: Partial<Settings> = { port: 0, dataFolder, durability: "os", log: "error" };
  const makeAgent = around(engine({ modelOf, tools, planningGate: "off" }));
  const gateway = await startGateway(settings, undefined, (host) =>
    makeAgent({
      ...host,
      writer: {
        ...host.writer,
        async append(run, drafts, claim) {
          await before?.(run.run_id, drafts);
          return host.writer.append(run, drafts, claim);
        },
      },
    }),
  );
  return {
    url: gateway.url,
    given(nextEnv, nextLimits) {
      env = nextEnv;
      limits = nextLimits;
    },
    async close() {
      await gateway.close();
      rmSync(dataFolder, { recursive: true });
    },
  };
}

/** For a whole test file: a server on a fake provider, both gone after its tests. */
export async function servedOnFake(
  options: ServedOptions = {},
  envOf: (url: string) => ModelEnv = () => ({}),
): Promise<{ readonly fake: FakeProvider; readonly server: Served }> {
  const fake = await fakeProvider();
  const server = await served(options);
  server.given(envOf(fake.url));
  afterAll(async () => {
    await server.close();
    await fake.close();
  });
  return { fake, server };
}

/** A tool that needs nothing. */
export const lookTool: Tool = {
  name: "look.up",
  description: "Looks something up.",
  effect: "read-only",
  input_schema: { type: "object", properties: { what: { type: "string" } } },
  run: async (input) => ({ found: (input as { what?: string }).what ?? "nothing" }),
};

export async function post(url: string, path: string, body: Facts): Promise<Facts> {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as Facts;
  if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(answer)}`);
  return answer;
}

export async function startRun(url: string, asked: Facts): Promise<string> {
  return String((await post(url, "/v1/agent/runs", { prompt: "Say hello", ...asked })).run_id);
}

/** Its own events, in the full view, once it has ended. */
export async function endedRun(url: string, run_id: string): Promise<readonly Event[]> {
  const events = await readRun(url, run_id);
  return events.filter(({ child_id }) => child_id === null);
}

/** Everything until the end of its stream, or until this is seen. Throws where it is not what every reader takes. */
export async function readRun(
  url: string,
  run_id: string,
  isEnough: (event: Event) => boolean = () => false,
): Promise<readonly Event[]> {
  const path = `/v1/agent/runs/${run_id}/stream?dialect=runwire&detail=full`;
  const response = await fetch(url + path, { headers: { Accept: "application/x-ndjson" } });
  const events: Event[] = [];
  let rest = "";
  for await (const text of (response.body as ReadableStream<Uint8Array>).pipeThrough(
    new TextDecoderStream(),
  )) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") continue;
      const event = JSON.parse(line) as Event;
      parseDraft(event);
      events.push(event);
    }
    if (events.some(isEnough)) break;
  }
  return events;
}

export async function recordOf(url: string, run_id: string): Promise<Facts> {
  return (await (await fetch(`${url}/v1/agent/runs/${run_id}`)).json()) as Facts;
}

/** Payloads of a type, in order. */
export function payloadsOf(events: readonly Event[], type: string): readonly Facts[] {
  return events.filter((e) => e.type === type).map(({ payload }) => payload as Facts);
}

export function joined(events: readonly Event[], type: string): string {
  return payloadsOf(events, type)
    .map(({ text }) => String(text))
    .join("");
}
