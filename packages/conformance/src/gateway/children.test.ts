// Children: made by an append or a request, written through any run above, mirrored upwards.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { limits } from "@runwire/protocol";
import { type Gateway, startGateway } from "@runwire/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  allEvents,
  append,
  call,
  codeOf,
  createRun,
  lifecycle,
  runPath,
  say,
  text,
  tryAppend,
} from "./calls.js";
import { freshChildId } from "./story.js";

const folder = mkdtempSync(join(tmpdir(), "runwire-children-"));
let gateway: Gateway;
let url: string;

beforeAll(async () => {
  gateway = await startGateway({ port: 0, dataFolder: folder, durability: "os" });
  url = gateway.url;
});

afterAll(async () => {
  await gateway.close();
  rmSync(folder, { recursive: true });
});

const ofType = async (run_id: string, type: string) =>
  (await allEvents(url, run_id)).filter((e) => e.type === type);

describe("children", () => {
  it("are made by an appended child.spawn, and written through any run above [RW-APPEND-6]", async () => {
    const root = await createRun(url);
    const [child, grandchild] = [freshChildId(), freshChildId()];
    await append(url, root, say("child.spawn", { child_id: child, prompt: "dig", tools_allowed: ["web"] }));
    await append(url, root, say("child.spawn", { child_id: grandchild, prompt: "deeper" }, child));
    await append(url, root, say("title", { title: "from above" }, grandchild));
    await append(url, child, say("title", { title: "from the middle" }, grandchild));
    await append(url, grandchild, say("title", { title: "from itself" }));
    const own = await allEvents(url, grandchild);
    expect(own.map(({ type, child_id }) => [type, child_id])).toEqual([
      ["run.lifecycle", null],
      ["turn.submitted", null],
      ["title", null],
      ["title", null],
      ["title", null],
    ]);
    expect(own[1]?.payload).toMatchObject({ messages: [{ role: "user", content: "deeper" }] });
    for (const above of [child, root]) {
      const mirrored = (await allEvents(url, above)).filter((e) => e.child_id === grandchild);
      expect(mirrored.map(({ id, payload }) => [id, payload])).toEqual(
        own.map(({ id, payload }) => [id, payload]),
      );
    }
    // Not through a run beside or below it, and not once it has ended.
    const other = await createRun(url);
    expect((await tryAppend(url, other, [text("x", child)])).status).toBe(422);
    expect((await tryAppend(url, grandchild, [text("x", child)])).status).toBe(422);
    await append(url, root, lifecycle("done", grandchild));
    const late = await tryAppend(url, root, [text("x", grandchild)]);
    expect([late.status, codeOf(late)]).toEqual([422, "KAI-RUN-CHILD-0001"]);
  });

  it("are made by a request, as an outside producer spawns them", async () => {
    const root = await createRun(url);
    const made = await call(url, "POST", runPath(root, "children"), {
      prompt: "help",
      tools_allowed: ["web"],
    });
    expect(made).toMatchObject({ status: 201, body: { parent_id: root, state: "running" } });
    const child = made.body.run_id as string;
    const [spawn] = await ofType(root, "child.spawn");
    expect(spawn?.payload).toEqual({ child_id: child, prompt: "help", tools_allowed: ["web"] });
    const listed = await call(url, "GET", runPath(root, "children"));
    expect(listed.body.children).toMatchObject([
      { run_id: child, parent_id: root, root_id: root, state: "running" },
    ]);
    const twice = await call(url, "POST", runPath(root, "children"), { prompt: "x", child_id: child });
    expect([twice.status, codeOf(twice)]).toEqual([409, "KAI-RUN-CHILD-0003"]);
    expect((await call(url, "POST", runPath(root, "children"), {})).status).toBe(422);
    expect((await call(url, "POST", runPath("run_unknown", "children"), { prompt: "x" })).status).toBe(404);
  });

  it("are eight levels deep at most", async () => {
    let at = await createRun(url);
    for (let level = 1; level <= limits.childDepthMax; level++) {
      const made = await call(url, "POST", runPath(at, "children"), { prompt: `level ${level}` });
      expect(made.status).toBe(201);
      at = made.body.run_id as string;
    }
    const tooDeep = await call(url, "POST", runPath(at, "children"), { prompt: "too deep" });
    expect([tooDeep.status, codeOf(tooDeep)]).toEqual([409, "KAI-RUN-CHILD-0003"]);
  });
});
